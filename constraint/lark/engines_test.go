package lark

import (
	"bufio"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"agentgraph/constraint/internal/bnftest"
)

// TestEngines asks the real engines, where they are at hand:
//
//	AGENTGRAPH_JUDGE_GBNF="python testdata/judge_llamacpp.py MODEL.gguf"
//	AGENTGRAPH_JUDGE_EBNF="python testdata/judge_xgrammar.py"
//
// Texts drawn from a grammar are accepted by its translation, and texts beside
// it are judged as package bnftest judges them, which stands in for the
// engines in the other tests.
func TestEngines(t *testing.T) {
	for name, d := range map[string]bnftest.Dialect{"GBNF": bnftest.GBNF, "EBNF": bnftest.EBNF} {
		t.Run(name, func(t *testing.T) {
			command := strings.Fields(os.Getenv("AGENTGRAPH_JUDGE_" + name))
			if len(command) == 0 {
				t.Skipf("AGENTGRAPH_JUDGE_%s is not set", name)
			}
			ask := startJudge(t, command)
			n := 0
			for i, s := range translatable(t) {
				g := mustParse(t, s.src)
				texts, err := bothDialects(t, g)
				if err != nil {
					continue
				}
				n += judgeOne(t, ask, s, g, texts[d], d, uint64(i))
			}
			t.Logf("%d texts", n)
			if n < 5000 {
				t.Errorf("only %d texts", n)
			}
		})
	}
}

func judgeOne(t *testing.T, ask func(string, []string) ([]*bool, string), s sample, g *Grammar, text string, d bnftest.Dialect, seed uint64) int {
	t.Helper()
	j, err := bnftest.Parse(text, d)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 9))
	var drawn, all []string
	for range 12 {
		x, err := g.Sample(r)
		if err != nil {
			t.Fatal(err)
		}
		// llama.cpp slows down on long texts of ambiguous grammars, and it
		// takes no NUL.
		if strings.Contains(x, "\x00") {
			continue
		}
		if len(x) < 300 || len(drawn) == 0 && !strings.Contains(s.src, "%ignore") {
			drawn = append(drawn, x)
		}
	}
	all = slices.Clone(drawn)
	for _, x := range drawn {
		for range 3 {
			all = append(all, beside(r, x))
		}
	}
	got, fault := ask(text, all)
	if fault != "" {
		t.Errorf("%s: %s\n%s", s.name, fault, text)
		return 0
	}
	judged := 0
	for i, x := range all {
		if got[i] == nil {
			continue // the vocabulary cannot spell it
		}
		judged++
		switch want := j.Accepts(x); {
		case i < len(drawn) && !*got[i]:
			t.Errorf("%s: the engine refuses %.100q\n%s\n%s", s.name, x, s.src, text)
		case *got[i] != want:
			t.Errorf("%s: %.100q: the engine says %v, bnftest %v\n%s", s.name, x, *got[i], want, text)
		}
	}
	return judged
}

// beside changes one character of text.
func beside(r *rand.Rand, text string) string {
	runes := []rune(text)
	pool := append([]rune("ab 0\"(é\nxZ,1]"), runes...)
	c := pool[r.IntN(len(pool))]
	i := r.IntN(len(runes) + 1)
	switch {
	case r.IntN(3) == 0 && i < len(runes):
		return string(slices.Delete(runes, i, i+1))
	case r.IntN(2) == 0 && i < len(runes):
		runes[i] = c
		return string(runes)
	}
	return string(slices.Insert(runes, i, c))
}

// startJudge runs a judge and returns how to ask it.
func startJudge(t *testing.T, command []string) func(grammar string, texts []string) ([]*bool, string) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = io.Discard
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the judge: %v", err)
		}
	})
	out := bufio.NewReader(pipe)
	return func(grammar string, texts []string) ([]*bool, string) {
		request, err := json.Marshal(map[string]any{"grammar": grammar, "texts": texts})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(append(request, '\n')); err != nil {
			t.Fatal(err)
		}
		line, err := out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("the judge does not answer: %v", err)
		}
		var answer struct {
			Accepts []*bool
			Error   string
		}
		if err := json.Unmarshal(line, &answer); err != nil || answer.Error == "" && len(answer.Accepts) != len(texts) {
			t.Fatalf("the judge answers %.200q", line)
		}
		return answer.Accepts, answer.Error
	}
}
