package constraint

import (
	"container/list"
	"sync"
)

// cache keeps the values used last.
type cache[K comparable, V any] struct {
	mu    sync.Mutex
	max   int
	drop  func(V)
	order *list.List // of *cacheEntry, the latest in front
	at    map[K]*list.Element
}

type cacheEntry[K comparable, V any] struct {
	key K
	val V
}

func newCache[K comparable, V any](max int, drop func(V)) *cache[K, V] {
	return &cache[K, V]{max: max, drop: drop, order: list.New(), at: map[K]*list.Element{}}
}

// get returns the value of key, made by fill when there is none. Fill must be
// quick; the cache is locked meanwhile.
func (c *cache[K, V]) get(key K, fill func() V) V {
	c.mu.Lock()
	if e, ok := c.at[key]; ok {
		c.order.MoveToFront(e)
		v := e.Value.(*cacheEntry[K, V]).val
		c.mu.Unlock()
		return v
	}
	v := fill()
	c.at[key] = c.order.PushFront(&cacheEntry[K, V]{key, v})
	var out []V
	for c.order.Len() > c.max {
		e := c.order.Back()
		old := c.order.Remove(e).(*cacheEntry[K, V])
		delete(c.at, old.key)
		out = append(out, old.val)
	}
	c.mu.Unlock()
	for _, o := range out {
		c.drop(o)
	}
	return v
}

func (c *cache[K, V]) clear() {
	c.mu.Lock()
	var out []V
	for e := c.order.Front(); e != nil; e = e.Next() {
		out = append(out, e.Value.(*cacheEntry[K, V]).val)
	}
	c.order.Init()
	clear(c.at)
	c.mu.Unlock()
	for _, o := range out {
		c.drop(o)
	}
}
