package maskbench

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"agentgraph/constraint"
)

func TestSlice(t *testing.T) {
	path := filepath.Join("..", "..", "..", "shared", "data", "maskbench-dev.jsonl")
	if _, err := os.Stat(path); err != nil {
		t.Skip("the MaskBench slice is not on this machine")
	}
	if _, err := constraint.ByteVocabulary(); errors.Is(err, constraint.ErrNotBuilt) {
		t.Skip(err)
	}
	run := func(name string, opt Options) *Report {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		opt.Case = func(c Case) {
			if c.Outcome != Pass {
				t.Logf("%s: %s %s: %s", name, c.Outcome, c.Name, c.Detail)
			}
		}
		r, err := Run(context.Background(), f, opt)
		if err != nil {
			t.Fatal(err)
		}
		out, _ := json.Marshal(r)
		t.Logf("%s: %s", name, out)
		return r
	}
	if r := run("raw", Options{Raw: true}); r.Pass != 441 || r.Refused != 72 || r.RejectsValid != 4 || r.AcceptsInvalid != 0 {
		t.Errorf("the engine alone: %+v, want 441 right, 72 refused, 4 reject a valid instance", r)
	}
	if r := run("mask", Options{Enforce: constraint.EnforceMask, Formats: constraint.FormatsAssert}); r.AcceptsInvalid != 0 || r.RejectsValid*100 > r.Schemas-r.Refused {
		t.Errorf("enforce: mask: %+v", r)
	}
	if r := run("validate", Options{Enforce: constraint.EnforceValidate, Formats: constraint.FormatsAssert}); r.AcceptsInvalid != 0 || r.RejectsValid*200 > r.Schemas || r.Refused*1000 > 15*r.Schemas {
		t.Errorf("enforce: validate: %+v", r)
	}
}
