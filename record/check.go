package record

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed turn.schema.json
var turnSchema []byte

const turnSchemaURL = "turn.schema.json"

// JSONSchema returns the JSON Schema of a record, Draft 2020-12. It is the
// same file as docs/turn.schema.json.
func JSONSchema() []byte { return bytes.Clone(turnSchema) }

var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(turnSchema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(turnSchemaURL, doc); err != nil {
		return nil, err
	}
	return c.Compile(turnSchemaURL)
})

// noLoader keeps the compiler from ever reading a file or a network address.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not part of the record's schema", url)
}

// Check validates the JSON of one record, as Marshal or the store wrote it.
// The error names each place as a JSON pointer.
func Check(b []byte) error {
	schema, err := compiled()
	if err != nil {
		return fmt.Errorf("the record's JSON Schema does not compile: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("not a record: %w", err)
	}
	err = schema.Validate(doc)
	var bad *jsonschema.ValidationError
	if !errors.As(err, &bad) {
		return err
	}
	var places []string
	leaves(bad, func(v *jsonschema.ValidationError) {
		if len(places) < 8 {
			places = append(places, fmt.Sprintf("at %q: %s", pointer(v.InstanceLocation),
				strings.Join(v.ErrorKind.KeywordPath(), "/")))
		}
	})
	return fmt.Errorf("not a valid record: %s", strings.Join(places, "; "))
}

func leaves(v *jsonschema.ValidationError, f func(*jsonschema.ValidationError)) {
	if len(v.Causes) == 0 {
		f(v)
	}
	for _, c := range v.Causes {
		leaves(c, f)
	}
}

func pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(t))
	}
	return b.String()
}
