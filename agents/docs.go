package agents

import (
	"fmt"
	"reflect"
	"strings"
)

// SettingsTables is the body of docs/settings.md: every key, from the tags
// of the settings structs.
func SettingsTables() string {
	var b strings.Builder
	section := func(title, intro string, t reflect.Type, prefix string) {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n| Key | Value | Default | What it does |\n|---|---|---|---|\n", title, intro)
		rows(&b, t, prefix)
		b.WriteString("\n")
	}
	section("agentgraph.yaml", "At the root of the graph; optional.", reflect.TypeFor[graphFile](), "")
	section("agents/&lt;name&gt;/agent.yaml", "In the agent's folder; optional. Besides these, any key of `defaults`.", agentOnly(), "")
	section("defaults and agent.yaml", "Under `defaults:` for every agent, or in one agent's `agent.yaml`, which wins key by key.", reflect.TypeFor[Options](), "")
	section("tools", "An entry of `tools:`, one of `tool`, `command` and `mcp`. A plain word stands for `{tool: WORD}`.", reflect.TypeFor[ToolOptions](), "")
	section("limits", "Under `limits:` in `agentgraph.yaml` or `agent.yaml`. A preset in `agent.yaml` replaces all bounds of the graph.", reflect.TypeFor[LimitOptions](), "")
	section("models", "Under `models:` in `agentgraph.yaml`, one entry per name. A relative path starts at the file it stands in.", reflect.TypeFor[ModelSpec](), "")
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// agentOnly is agentFile without the keys it shares with defaults.
func agentOnly() reflect.Type {
	t := reflect.TypeFor[agentFile]()
	var fields []reflect.StructField
	for i := range t.NumField() {
		if f := t.Field(i); !f.Anonymous {
			fields = append(fields, f)
		}
	}
	return reflect.StructOf(fields)
}

func rows(b *strings.Builder, t reflect.Type, prefix string) {
	for _, f := range fieldsOf(t) {
		typ := f.typ
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		doc := f.tag.Get("doc")
		if f.tag.Get("later") != "" {
			doc += " *Not supported yet; refused.*"
		}
		def := f.tag.Get("default")
		if def == "" {
			def = "–"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", prefix+f.name, valueWord(typ, f.tag), def, doc)
		if typ.Kind() == reflect.Struct && typ != typeNode && typ.Name() != "Options" && typ.Name() != "LimitOptions" {
			rows(b, typ, prefix+f.name+".")
		}
	}
}

func valueWord(t reflect.Type, tag reflect.StructTag) string {
	word := ""
	switch {
	case t == typeDuration:
		word = "duration"
	case t == typeNode:
		word = "any"
	case tag.Get("path") != "" && t.Kind() == reflect.Slice:
		word = "list of folders"
	case tag.Get("path") != "":
		word = "path"
	case tag.Get("enum") != "" && t.Kind() == reflect.Slice:
		return "list of `" + strings.ReplaceAll(tag.Get("enum"), ",", "`, `") + "`"
	case tag.Get("enum") != "":
		return "`" + strings.ReplaceAll(tag.Get("enum"), ",", "`, `") + "`"
	default:
		switch t.Kind() {
		case reflect.String:
			word = "text"
		case reflect.Bool:
			word = "`true`, `false`"
		case reflect.Int, reflect.Uint64:
			word = "whole number"
		case reflect.Float64:
			word = "number"
		case reflect.Slice:
			word = "list"
		case reflect.Map:
			word = "keys"
		default:
			word = "keys"
		}
	}
	low, high := tag.Get("min"), tag.Get("max")
	switch {
	case low != "" && high != "":
		word += ", " + low + " to " + high
	case low != "":
		word += ", at least " + low
	}
	return word
}
