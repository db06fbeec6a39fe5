package credentials

import (
	"sync"
	"time"

	providerv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// A cache contains the responses of one plugin. The zero value is empty. Safe for
// concurrent use.
type cache struct {
	mu      sync.Mutex
	entries map[cacheKey]cacheEntry // guarded by mu
}

// A cacheKey identifies the images and pods that a response applies to.
type cacheKey struct {
	scope   providerv1.PluginCacheKeyType
	of      string // the image or the registry
	account string // key of the service account and perhaps hash of its token; "" for the node
}

type cacheEntry struct {
	entries []entry
	until   time.Time
}

func keyOf(t target, account string, s providerv1.PluginCacheKeyType) cacheKey {
	k := cacheKey{scope: s, account: account}
	switch s {
	case providerv1.ImagePluginCacheKeyType:
		k.of = t.name
	case providerv1.RegistryPluginCacheKeyType:
		k.of = t.host
	}
	return k
}

// get returns the cached credentials of an image: those for the image, its registry, or
// all images.
func (c *cache) get(t target, account string, now time.Time) ([]entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range []providerv1.PluginCacheKeyType{
		providerv1.ImagePluginCacheKeyType, providerv1.RegistryPluginCacheKeyType, providerv1.GlobalPluginCacheKeyType,
	} {
		if a, ok := c.entries[keyOf(t, account, s)]; ok && now.Before(a.until) {
			return a.entries, true
		}
	}
	return nil, false
}

// put caches a response for the given duration, if it is positive, and removes expired
// entries, which would accumulate for tokens.
func (c *cache) put(t target, account string, s providerv1.PluginCacheKeyType, entries []entry, now time.Time, duration time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, a := range c.entries {
		if !now.Before(a.until) {
			delete(c.entries, k)
		}
	}
	if duration <= 0 {
		return
	}
	if c.entries == nil {
		c.entries = map[cacheKey]cacheEntry{}
	}
	c.entries[keyOf(t, account, s)] = cacheEntry{entries: entries, until: now.Add(duration)}
}
