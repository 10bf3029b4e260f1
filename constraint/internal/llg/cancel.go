//go:build cgo && !nonative

package llg

/*
#include "agentgraph_llg.h"
*/
import "C"

import "sync"

// canceller owns a matcher's cancellation handle. The handle outlives the
// matcher's calls, so that another goroutine may use it while one runs.
type canceller struct {
	mu sync.Mutex
	p  *C.LlgCancellationHandle
}

func (c *canceller) open(m *C.LlgMatcher) { c.p = C.llg_matcher_get_cancellation_handle(m) }

func (c *canceller) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.p != nil {
		C.llg_cancel(c.p)
	}
}

func (c *canceller) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	C.llg_free_cancellation_handle(c.p)
	c.p = nil
}
