package local

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// availableMemory is how many bytes this process may still take, by the
// machine and by its control group; false where neither is known.
func availableMemory() (int64, bool) {
	avail, ok := meminfo("/proc/meminfo")
	if left, limited := cgroupLeft(); limited && (!ok || left < avail) {
		avail, ok = left, true
	}
	return avail, ok
}

func meminfo(path string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:")
		if !ok {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		return kb << 10, err == nil
	}
	return 0, false
}

// cgroupLeft reads the limits of the control groups (v2) above this process.
// Memory that only caches files does not count as used.
func cgroupLeft() (left int64, limited bool) {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		for dir := filepath.Join("/sys/fs/cgroup", path); len(dir) >= len("/sys/fs/cgroup"); dir = filepath.Dir(dir) {
			most, ok := number(filepath.Join(dir, "memory.max"))
			if !ok {
				continue
			}
			used, _ := number(filepath.Join(dir, "memory.current"))
			if stat, err := os.ReadFile(filepath.Join(dir, "memory.stat")); err == nil {
				for line := range strings.Lines(string(stat)) {
					if v, ok := strings.CutPrefix(line, "file "); ok {
						files, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
						used -= files
					}
				}
			}
			if rest := max(most-used, 0); !limited || rest < left {
				left, limited = rest, true
			}
		}
	}
	return left, limited
}

func number(path string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

// cacheBytes estimates the keys and values of tokens positions, 2 bytes each.
func (g *gguf) cacheBytes(tokens int64) int64 {
	layers, heads := g.hyper("block_count"), g.hyper("attention.head_count")
	kv := g.hyper("attention.head_count_kv")
	if kv == 0 {
		kv = heads
	}
	key, val := g.hyper("attention.key_length"), g.hyper("attention.value_length")
	if heads > 0 {
		if key == 0 {
			key = g.hyper("embedding_length") / heads
		}
		if val == 0 {
			val = g.hyper("embedding_length") / heads
		}
	}
	return tokens * layers * kv * (key + val) * 2
}

// fits is an error when a model of weights bytes and its cache are more than
// the memory there is.
func (g *gguf) fits(weights, tokens int64) error {
	avail, ok := availableMemory()
	cache := g.cacheBytes(tokens)
	if !ok || weights+cache <= avail {
		return nil
	}
	return fmt.Errorf("the model %s does not fit in memory: %s of weights and %s for %d tokens of context, and %s are available; use a smaller model or quantisation, or less context or parallel",
		filepath.Base(g.path), mebi(weights), mebi(cache), tokens, mebi(avail))
}

func mebi(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<19)>>20) }

// physicalCores counts the cores this process may use, once for each core
// that runs two threads: arithmetic gains nothing from the second.
func physicalCores() int {
	allowed := runtime.GOMAXPROCS(0)
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return allowed
	}
	var cpus []int
	for line := range strings.Lines(string(data)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			cpus = cpuList(strings.TrimSpace(list))
		}
	}
	cores := map[string]bool{}
	for _, cpu := range cpus {
		sib, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
		if err != nil {
			return allowed
		}
		cores[string(sib)] = true
	}
	if len(cores) == 0 {
		return allowed
	}
	return max(1, min(allowed, len(cores)))
}

// cpuList parses "0-3,8".
func cpuList(s string) []int {
	var out []int
	for _, part := range strings.Split(s, ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(lo)
		if err != nil {
			continue
		}
		b := a
		if ranged {
			if b, err = strconv.Atoi(hi); err != nil || b-a > 1<<16 {
				continue
			}
		}
		for ; a <= b; a++ {
			out = append(out, a)
		}
	}
	return out
}
