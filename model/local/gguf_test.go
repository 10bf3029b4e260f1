package local

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ggufBuilder writes small GGUF files for tests.
type ggufBuilder struct{ keys, table, data bytes.Buffer }

func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			binary.Write(b, binary.LittleEndian, uint64(len(s)))
			b.WriteString(s)
			continue
		}
		binary.Write(b, binary.LittleEndian, v)
	}
}

// floatSize knows one tensor type, F32.
func floatSize(kind uint32, n uint64) uint64 {
	if kind != 0 {
		return 0
	}
	return 4 * n
}

// smallGGUF has three keys and one F32 tensor of 8 × 2.
func smallGGUF() []byte {
	var b bytes.Buffer
	b.WriteString("GGUF")
	put(&b, uint32(3), uint64(1), uint64(4))
	put(&b, "general.architecture", uint32(8), "llama")
	put(&b, "llama.context_length", uint32(4), uint32(512))
	put(&b, "tokenizer.ggml.tokens", uint32(9), uint32(8), uint64(2), "a", "bc")
	put(&b, "tokenizer.ggml.scores", uint32(9), uint32(6), uint64(2), float32(1), float32(2))
	put(&b, "w", uint32(2), uint64(8), uint64(2), uint32(0), uint64(0))
	for b.Len()%32 != 0 {
		b.WriteByte(0)
	}
	b.Write(make([]byte, 64))
	return b.Bytes()
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGGUFHeader(t *testing.T) {
	g, err := readGGUF(write(t, "m.gguf", smallGGUF()), floatSize)
	if err != nil {
		t.Fatal(err)
	}
	if g.hyper("context_length") != 512 || g.lens["tokenizer.ggml.tokens"] != 2 || g.need != g.have {
		t.Errorf("got %+v", g)
	}
}

// TestGGUFCutShort cuts a file at every byte: each is refused as cut short.
func TestGGUFCutShort(t *testing.T) {
	whole := smallGGUF()
	dir := t.TempDir()
	for n := range whole {
		path := filepath.Join(dir, "cut.gguf")
		if err := os.WriteFile(path, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readGGUF(path, floatSize); err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Fatalf("cut at %d of %d: error is %v", n, len(whole), err)
		}
	}
}

func TestGGUFRefusals(t *testing.T) {
	change := func(at int, b ...byte) []byte {
		data := smallGGUF()
		copy(data[at:], b)
		return data
	}
	kind := bytes.LastIndex(smallGGUF(), []byte{8, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}) + 16
	for _, tt := range []struct {
		name, want string
		data       []byte
	}{
		{"another format", `not a GGUF file: it starts with "PK\x03\x04"`, []byte("PK\x03\x04 something else")},
		{"big-endian", "big-endian", change(4, 0, 0, 0, 3)},
		{"old version", "version 1", change(4, 1)},
		{"too many tensors", "damaged", change(8, 0xff, 0xff, 0xff, 0xff, 0xff)},
		{"unknown tensor type", "another quantisation", change(kind, 77)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readGGUF(write(t, "m.gguf", tt.data), floatSize)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q in it", err, tt.want)
			}
		})
	}
	for _, tt := range []struct{ name, path, want string }{
		{"missing", filepath.Join(t.TempDir(), "none.gguf"), "does not exist"},
		{"folder", t.TempDir(), "is a folder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readGGUF(tt.path, floatSize)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q in it", err, tt.want)
			}
		})
	}
}

func FuzzGGUF(f *testing.F) {
	f.Add(smallGGUF())
	f.Add([]byte("GGUF\x03\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := readGGUF(write(t, "m.gguf", data), floatSize)
		if err == nil && (g.need > g.have || g.need < 0) {
			t.Errorf("accepted with %d of %d bytes", g.have, g.need)
		}
	})
}

func TestMemoryFigures(t *testing.T) {
	path := write(t, "meminfo", []byte("MemTotal:       100 kB\nMemAvailable:    64 kB\n"))
	if n, ok := meminfo(path); !ok || n != 64<<10 {
		t.Errorf("got %d %v", n, ok)
	}
	g := &gguf{path: "m.gguf", text: map[string]string{"general.architecture": "llama"}, ints: map[string]int64{
		"llama.block_count": 30, "llama.attention.head_count": 9, "llama.attention.head_count_kv": 3, "llama.embedding_length": 576,
	}}
	if got := g.cacheBytes(2048); got != 2048*30*3*128*2 {
		t.Errorf("cache of %d bytes", got)
	}
	if _, known := availableMemory(); known {
		err := g.fits(1<<50, 2048)
		if err == nil || !strings.Contains(err.Error(), "smaller model") {
			t.Errorf("error is %v", err)
		}
		if err := g.fits(1, 1); err != nil {
			t.Error(err)
		}
	}
	if got := cpuList("0-2,7"); len(got) != 4 || got[3] != 7 {
		t.Errorf("got %v", got)
	}
	if n := physicalCores(); n < 1 {
		t.Errorf("%d cores", n)
	}
}
