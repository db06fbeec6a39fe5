package credentials

import (
	"sync"
	"time"
)

// A scope is how far a plugin's answer goes: the cacheKeyType of its response.
type scope string

const (
	scopeImage    scope = "Image"
	scopeRegistry scope = "Registry"
	scopeGlobal   scope = "Global"
)

// A cache keeps the answers of one plugin. The zero value is empty.
type cache struct {
	// mu guards kept.
	mu   sync.Mutex
	kept map[cacheKey]answerKept
}

// A cacheKey says for what an answer is good.
type cacheKey struct {
	scope scope
	of    string // the image or the registry
	whose string // the service account and perhaps its token; "" for the node
}

type answerKept struct {
	entries []entry
	until   time.Time
}

func keyOf(t target, whose string, s scope) cacheKey {
	k := cacheKey{scope: s, whose: whose}
	switch s {
	case scopeImage:
		k.of = t.name
	case scopeRegistry:
		k.of = t.host
	}
	return k
}

// get returns what is kept for the image: the answer for it, or for its
// registry, or for all.
func (c *cache) get(t target, whose string, now time.Time) ([]entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range []scope{scopeImage, scopeRegistry, scopeGlobal} {
		if a, ok := c.kept[keyOf(t, whose, s)]; ok && now.Before(a.until) {
			return a.entries, true
		}
	}
	return nil, false
}

// put keeps an answer, unless it is not to be kept, and drops what has expired:
// answers to tokens would pile up.
func (c *cache) put(t target, whose string, s scope, entries []entry, now time.Time, keep time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, a := range c.kept {
		if !now.Before(a.until) {
			delete(c.kept, k)
		}
	}
	if keep <= 0 {
		return
	}
	if c.kept == nil {
		c.kept = map[cacheKey]answerKept{}
	}
	c.kept[keyOf(t, whose, s)] = answerKept{entries: entries, until: now.Add(keep)}
}
