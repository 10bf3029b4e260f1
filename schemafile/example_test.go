package schemafile_test

import (
	"fmt"

	"agentgraph/schemafile"
)

func ExampleParse() {
	for _, file := range []string{".schema-rating.json", ".schema-out-{timestamp}.txt@regex", ".schema-story.txt"} {
		name, err := schemafile.Parse(file)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(name.Format, name.Ext, name.Kind())
	}
	// Output:
	// rating json json
	// out-{timestamp} txt regex
	// .schema-story.txt: the extension 'txt' says no type; add one of @json, @regex, @lark and @llg, for example '.schema-story.txt@regex'
}
