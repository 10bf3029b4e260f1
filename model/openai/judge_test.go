package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"agentgraph/constraint"
)

// mistral.rs comes as a Python package without its server. Its engine is asked
// under the very grammars that its server would be sent:
//
//	AGENTGRAPH_JUDGE_MISTRALRS="python testdata/judge_mistralrs.py MODEL.gguf" go test -run Judge ./model/openai
//
// with the package mistralrs, 0.9.5 for one.
func TestJudgeMistralRS(t *testing.T) {
	judge := strings.Fields(os.Getenv("AGENTGRAPH_JUDGE_MISTRALRS"))
	if len(judge) == 0 {
		t.Skip("AGENTGRAPH_JUDGE_MISTRALRS is not set")
	}
	var in bytes.Buffer
	var cons []*constraint.Constraint
	for _, kind := range Kinds {
		con := compile(t, kind, canaries[kind], "")
		_, body, weak, err := Body("mistralrs", "", false, question(con))
		if err != nil || weak != nil {
			t.Fatal(err, weak)
		}
		in.Write(mustJSON(t, body)["grammar"])
		in.WriteByte('\n')
		cons = append(cons, con)
	}
	cmd := exec.Command(judge[0], judge[1:]...)
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	// The wheel writes its log to stdout as well.
	var answers []string
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		var text string
		if json.Unmarshal(s.Bytes(), &text) == nil {
			answers = append(answers, text)
		}
	}
	if len(answers) != len(cons) {
		t.Fatalf("%d answers to %d grammars: %s", len(answers), len(cons), out)
	}
	for i, con := range cons {
		if v := con.Validate(t.Context(), answers[i]); !v.Valid {
			t.Errorf("%s: the answer is %q", Kinds[i], answers[i])
		}
	}
}
