package agents

import (
	"strings"
	"testing"
)

func TestServerEntries(t *testing.T) {
	const secret = "sk-do-not-print-me"
	const at = "server: vllm, url: 'http://h:1/v1', model: x"
	for _, tc := range []struct{ name, models, want string }{
		{"plain", "{" + at + "}", ""},
		{"everything", "{" + at + ", key: {env: VLLM_KEY}, tls_ca: ca.pem, proxy: none, backend: llguidance, constraints: [json], context: 4096, parallel: 4}", ""},
		{"llama.cpp has one model", "{server: llamacpp, url: 'http://127.0.0.1:8080'}", ""},
		{"no address", "{server: vllm, model: x}", "names a server and no url"},
		{"no model", "{server: vllm, url: 'http://h:1'}", "none of its models"},
		{"kind that is none", "{server: vlm, url: 'http://h:1', model: x}", "write one of generic, llamacpp, mistralrs, ollama, openai, sglang, vllm"},
		{"address of another kind", "{server: vllm, url: 'ftp://" + secret + "@h', model: x}", "a url that is no address of a server"},
		{"address that does not parse", "{server: vllm, url: 'http://" + secret + ":%zz', model: x}", "a url that is no address of a server"},
		{"key of a file", "{gguf: a.gguf, key: {env: X}}", "has a key and no server"},
		{"key as text", "{" + at + ", key: " + secret + "}", "says where a secret comes from and does not hold it"},
		{"key as a list", "{" + at + ", key: [" + secret + "]}", "says where a secret comes from and does not hold it"},
		{"key as a variable's name", "{" + at + ", key: {env: " + secret + "}}", "no name of an environment variable"},
		{"two keys", "{" + at + ", key: {env: X, file: y}}", "does not say where it comes from"},
		{"no key", "{" + at + ", key: {}}", "does not say where it comes from"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := graphWith(t, "models: {m: "+tc.models+"}\n", "model: m\n")
			var got []string
			for _, f := range g.Findings {
				got = append(got, f.String())
			}
			text := strings.Join(got, "\n")
			if (tc.want == "") != (text == "") || !strings.Contains(text, tc.want) {
				t.Errorf("findings are %q, want %q among them", text, tc.want)
			}
			if strings.Contains(text, secret) {
				t.Errorf("the findings quote a secret: %s", text)
			}
		})
	}
}
