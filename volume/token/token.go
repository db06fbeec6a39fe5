package token

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	maxAge    = 24 * time.Hour
	maxJitter = 10 * time.Second

	// purgePeriod is the time for which an expired entry stays in memory.
	purgePeriod = time.Minute

	// retryAfter is the time between two attempts to replace a token that is still valid.
	retryAfter = 30 * time.Second

	// DefaultExpiration is the lifetime in seconds of a token whose volume specifies none.
	DefaultExpiration int64 = 3600
)

// A Config configures a [Cache].
type Config struct {
	// Get requests a new token from the API server at each call, and returns the response,
	// whose Status has the token and its expiration. Required.
	Get func(ctx context.Context, namespace, serviceAccount string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)

	// Failed is called if a token could not be replaced while the old one is still valid. It
	// may be nil.
	Failed func(namespace, serviceAccount string, err error)
}

// A Token is a service account token.
type Token struct {
	Value      string
	Expiration time.Time

	// RefreshAt is the time at which Token returns a replacement.
	RefreshAt time.Time
}

// A Cache caches tokens. Safe for concurrent use.
type Cache struct {
	cfg Config

	// mu guards the fields below. It is not held during requests.
	mu      sync.Mutex
	entries map[string]*entry
	purged  time.Time
}

// An entry is the cached token of one key.
type entry struct {
	pod types.UID // of the bound object

	token   Token
	retryAt time.Time // earliest next request after a failure

	// asking is closed when the request in progress has completed; nil if there is none.
	asking chan struct{}
}

// New returns a Cache, or an error if Config.Get is nil.
func New(cfg Config) (*Cache, error) {
	if cfg.Get == nil {
		return nil, errors.New("token: Config.Get is nil")
	}
	if cfg.Failed == nil {
		cfg.Failed = func(string, string, error) {}
	}
	return &Cache{cfg: cfg, entries: map[string]*entry{}}, nil
}

// Token returns the cached token, or requests one if there is none or it must be replaced. It blocks for
// the request. The texts of errors are the kubelet's.
func (c *Cache) Token(ctx context.Context, namespace, serviceAccount string, request *authenticationv1.TokenRequest) (Token, error) {
	if request == nil {
		return Token{}, errors.New("token: the request is nil")
	}
	key := keyOf(namespace, serviceAccount, request)
	for {
		now := time.Now()
		c.mu.Lock()
		c.purgeLocked(now)
		e := c.entries[key]
		if e == nil {
			e = new(entry)
			if ref := request.Spec.BoundObjectRef; ref != nil {
				e.pod = ref.UID
			}
			c.entries[key] = e
		}
		good := now.Before(e.token.Expiration)
		if good && (now.Before(e.token.RefreshAt) || now.Before(e.retryAt)) {
			t := e.token
			c.mu.Unlock()
			if t.RefreshAt.Before(e.retryAt) {
				t.RefreshAt = e.retryAt
			}
			return t, nil
		}
		asking := e.asking
		if asking == nil {
			e.asking = make(chan struct{})
			c.mu.Unlock()
			return c.ask(ctx, e, key, namespace, serviceAccount, request)
		}
		c.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
			return Token{}, fmt.Errorf("failed to fetch token: %w", ctx.Err())
		}
	}
}

// ask requests a new token for e and closes e.asking.
func (c *Cache) ask(ctx context.Context, e *entry, key, namespace, serviceAccount string, request *authenticationv1.TokenRequest) (Token, error) {
	answer, err := c.cfg.Get(ctx, namespace, serviceAccount, request.DeepCopy())
	if err == nil && (answer == nil || answer.Status.Token == "") {
		err = errors.New("the response contains no token")
	}
	now := time.Now()
	c.mu.Lock()
	close(e.asking)
	e.asking = nil
	if err == nil {
		e.token, e.retryAt = made(request, answer, now), time.Time{}
		t := e.token
		c.mu.Unlock()
		return t, nil
	}
	old := e.token
	good := now.Before(old.Expiration)
	if good {
		e.retryAt = now.Add(retryAfter)
		if e.retryAt.After(old.Expiration) {
			e.retryAt = old.Expiration
		}
		old.RefreshAt = e.retryAt
	}
	c.mu.Unlock()
	switch {
	case good:
		c.cfg.Failed(namespace, serviceAccount, err)
		return old, nil
	case old.Value != "":
		return Token{}, fmt.Errorf("token %s expired and refresh failed: %w", key, err)
	}
	return Token{}, fmt.Errorf("failed to fetch token: %w", err)
}

// made returns the token of a response. It is refreshed when 20 % of its lifetime is left, or after 24
// hours, minus a jitter of up to 10 s (rule vol-56).
func made(request, answer *authenticationv1.TokenRequest, now time.Time) Token {
	t := Token{Value: answer.Status.Token, Expiration: answer.Status.ExpirationTimestamp.Time}
	seconds := DefaultExpiration
	switch { // the server may shorten the requested lifetime
	case answer.Spec.ExpirationSeconds != nil:
		seconds = *answer.Spec.ExpirationSeconds
	case request.Spec.ExpirationSeconds != nil:
		seconds = *request.Spec.ExpirationSeconds
	}
	life := time.Duration(seconds) * time.Second
	if t.Expiration.IsZero() {
		t.Expiration = now.Add(life)
	}
	due := t.Expiration.Add(-life / 5)
	if old := t.Expiration.Add(maxAge - life); old.Before(due) {
		due = old
	}
	t.RefreshAt = due.Add(-rand.N(maxJitter))
	if soon := now.Add(retryAfter); t.RefreshAt.Before(soon) { // the clock of the node is ahead
		t.RefreshAt = soon
	}
	return t
}

// purgeLocked deletes expired entries once per minute. A recently expired one is kept for another
// period, because the error of a failed replacement then reports that a token expired.
func (c *Cache) purgeLocked(now time.Time) {
	if now.Sub(c.purged) < purgePeriod {
		return
	}
	c.purged = now
	for key, e := range c.entries {
		if e.asking == nil && now.Sub(e.token.Expiration) > purgePeriod {
			delete(c.entries, key)
		}
	}
}

// Forget deletes the tokens that are bound to a pod.
func (c *Cache) Forget(pod types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		if e.pod == pod && pod != "" {
			delete(c.entries, key)
		}
	}
}

// Len returns the number of cached tokens.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// keyOf returns the cache key: everything that distinguishes tokens.
func keyOf(namespace, serviceAccount string, r *authenticationv1.TokenRequest) string {
	var seconds int64
	if r.Spec.ExpirationSeconds != nil {
		seconds = *r.Spec.ExpirationSeconds
	}
	var ref authenticationv1.BoundObjectReference
	if r.Spec.BoundObjectRef != nil {
		ref = *r.Spec.BoundObjectRef
	}
	return fmt.Sprintf("%q/%q/%q/%d/%q %q %q %q", namespace, serviceAccount, r.Spec.Audiences, seconds, ref.APIVersion, ref.Kind, ref.Name, ref.UID)
}
