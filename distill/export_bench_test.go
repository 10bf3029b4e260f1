package distill_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"agentgraph/distill"
)

func BenchmarkExport(b *testing.B) {
	split := []distill.Share{{Name: "train", Weight: 9}, {Name: "test", Weight: 1}}
	for name, opt := range map[string]distill.ExportOptions{
		"jsonl":   {},
		"parquet": {Format: distill.Parquet},
		"all":     {Format: distill.Parquet, Split: split, Dedupe: 0.9, Filter: distill.Filter{Where: "answer.rating > 0"}},
	} {
		b.Run(name, func(b *testing.B) {
			root, n := benchRoot(b)
			dir := b.TempDir()
			for i := 0; b.Loop(); i++ {
				opt.Dir = filepath.Join(dir, fmt.Sprint(i))
				rep, err := distill.Export(context.Background(), root, opt)
				if err != nil || rep.Answers != n || opt.Dedupe == 0 && rep.Rows != n {
					b.Fatalf("%+v, %v", rep, err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
