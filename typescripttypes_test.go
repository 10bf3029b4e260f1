package agentgraph_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/record"
)

// tsInterfaces are the interfaces of record.ts and where the record's JSON
// Schema describes the same object.
var tsInterfaces = map[string][]string{
	"TurnRecord": {}, "Outcome": {"$defs", "outcome"}, "Token": {"$defs", "token"}, "Usage": {"$defs", "usage"}, "TurnError": {"$defs", "error"},
	"Validation": {"$defs", "validation"}, "Diagnostic": {"$defs", "diagnostics", "items"}, "Repair": {"$defs", "repair"},
	"Accounting": {"$defs", "accounting"}, "Request": {"$defs", "request"}, "PassedOver": {"$defs", "request", "properties", "passed_over", "items"},
	"Message": {"$defs", "message"}, "Constraint": {"$defs", "constraint"}, "Sampling": {"$defs", "sampling"}, "Tool": {"$defs", "tool"},
	"ModelIdentity": {"$defs", "model"}, "FileRef": {"$defs", "file"}, "ToolCall": {"$defs", "tool_call"}, "ToolRound": {"$defs", "tool_round"},
	"Lineage": {"$defs", "lineage"}, "Sample": {"$defs", "sample"}, "Timing": {"$defs", "timing"},
}

// The TypeScript client's types have the members and the closed lists of the
// record's JSON Schema.
func TestTypeScriptTypesAreTheRecords(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal(record.JSONSchema(), &doc); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join("clients", "typescript", "src", "record.ts"))
	if err != nil {
		t.Fatal(err)
	}
	source := string(b)
	found := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?ms)^export interface (\w+) \{\n(.*?)^\}`).FindAllStringSubmatch(source, -1) {
		members := []string{}
		for _, f := range regexp.MustCompile(`(?m)^  (\w+\??):`).FindAllStringSubmatch(m[2], -1) {
			members = append(members, f[1])
		}
		slices.Sort(members)
		found[m[1]] = members
	}
	described := map[string]bool{}
	for name, path := range tsInterfaces {
		at := doc
		for _, key := range path {
			next, ok := at[key].(map[string]any)
			if !ok {
				t.Fatalf("the schema has no %s", strings.Join(path, "/"))
			}
			at = next
		}
		if len(path) == 2 {
			described[path[1]] = true
		}
		required, _ := at["required"].([]any)
		want := []string{}
		for member := range at["properties"].(map[string]any) {
			if !slices.Contains(required, any(member)) {
				member += "?"
			}
			want = append(want, member)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, found[name]); diff != "" {
			t.Errorf("clients/typescript/src/record.ts: interface %s (-schema +types):\n%s", name, diff)
		}
	}
	for name, def := range doc["$defs"].(map[string]any) {
		if _, object := def.(map[string]any)["properties"]; object && name != "source" && !described[name] {
			t.Errorf("clients/typescript/src/record.ts has no interface for $defs/%s; add one, and its name to this test", name)
		}
	}
	for alias, def := range map[string]string{"Status": "status", "Code": "code"} {
		m := regexp.MustCompile(`(?s)export type ` + alias + ` =(.*?);`).FindStringSubmatch(source)
		if m == nil {
			t.Fatalf("record.ts has no type %s", alias)
		}
		var got, want []string
		for _, v := range regexp.MustCompile(`"(\w+)"`).FindAllStringSubmatch(m[1], -1) {
			got = append(got, v[1])
		}
		for _, v := range doc["$defs"].(map[string]any)[def].(map[string]any)["enum"].([]any) {
			want = append(want, v.(string))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("type %s (-schema +types):\n%s", alias, diff)
		}
	}
}
