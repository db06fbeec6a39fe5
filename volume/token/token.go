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

	// purgePeriod is how long an entry that has ended may stay in memory.
	purgePeriod = time.Minute

	// retryAfter is how long a failed replacement rests, while the old token is
	// good.
	retryAfter = 30 * time.Second

	// DefaultExpiration is how long a token lives if a volume doesn't say, in
	// seconds (vol-55).
	DefaultExpiration int64 = 3600
)

// A Config says where tokens come from.
type Config struct {
	// Get asks for a new token, each time, as volume.Tokens has it. Required.
	Get func(ctx context.Context, namespace, serviceAccount string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)

	// Failed hears why a token couldn't be replaced while the old one is still
	// good. Nil: nobody does.
	Failed func(namespace, serviceAccount string, err error)
}

// A Token is good until End.
type Token struct {
	Value string
	End   time.Time

	// RefreshAt is when to ask again: then, or a little later, there is another.
	RefreshAt time.Time
}

// A Cache keeps tokens. See the package.
type Cache struct {
	cfg Config

	// mu guards the fields below, and is not held while one waits.
	mu      sync.Mutex
	entries map[string]*entry
	purged  time.Time
}

// An entry is what is known of one kind of token.
type entry struct {
	pod types.UID // that it is bound to

	token   Token
	retryAt time.Time // after a failure: not before

	// asking is closed when the request in flight has ended; nil: there is none.
	asking chan struct{}
}

// New returns a Cache for cfg.
func New(cfg Config) (*Cache, error) {
	if cfg.Get == nil {
		return nil, errors.New("token: Config.Get is nil")
	}
	if cfg.Failed == nil {
		cfg.Failed = func(string, string, error) {}
	}
	return &Cache{cfg: cfg, entries: map[string]*entry{}}, nil
}

// Token returns a token that is good, if there is one, and gets it if there is none
// or it is time for another. Errors are in the kubelet's words (vol-56).
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
		good := now.Before(e.token.End)
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

// ask gets a new token for e, whose asking is this call's to close.
func (c *Cache) ask(ctx context.Context, e *entry, key, namespace, serviceAccount string, request *authenticationv1.TokenRequest) (Token, error) {
	answer, err := c.cfg.Get(ctx, namespace, serviceAccount, request.DeepCopy())
	if err == nil && (answer == nil || answer.Status.Token == "") {
		err = errors.New("the answer has no token in it")
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
	good := now.Before(old.End)
	if good {
		e.retryAt = now.Add(retryAfter)
		if e.retryAt.After(old.End) {
			e.retryAt = old.End
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

// made is the token of an answer. It is due for another when a fifth of its life is
// left, or after a day, less up to ten seconds (vol-56).
func made(request, answer *authenticationv1.TokenRequest, now time.Time) Token {
	t := Token{Value: answer.Status.Token, End: answer.Status.ExpirationTimestamp.Time}
	seconds := DefaultExpiration
	switch { // the server may have changed its mind about what was asked for
	case answer.Spec.ExpirationSeconds != nil:
		seconds = *answer.Spec.ExpirationSeconds
	case request.Spec.ExpirationSeconds != nil:
		seconds = *request.Spec.ExpirationSeconds
	}
	life := time.Duration(seconds) * time.Second
	if t.End.IsZero() {
		t.End = now.Add(life)
	}
	due := t.End.Add(-life / 5)
	if old := t.End.Add(maxAge - life); old.Before(due) {
		due = old
	}
	t.RefreshAt = due.Add(-rand.N(maxJitter))
	if soon := now.Add(retryAfter); t.RefreshAt.Before(soon) { // by a clock that is ahead
		t.RefreshAt = soon
	}
	return t
}

// purgeLocked drops what has ended, once a minute, so that memory doesn't grow with
// requests that nobody repeats. What ended a moment ago stays a period longer: its
// error should say that it was there.
func (c *Cache) purgeLocked(now time.Time) {
	if now.Sub(c.purged) < purgePeriod {
		return
	}
	c.purged = now
	for key, e := range c.entries {
		if e.asking == nil && now.Sub(e.token.End) > purgePeriod {
			delete(c.entries, key)
		}
	}
}

// Forget drops the tokens that are bound to a pod.
func (c *Cache) Forget(pod types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		if e.pod == pod && pod != "" {
			delete(c.entries, key)
		}
	}
}

// Len is how many kinds of tokens are kept.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// keyOf names a kind of token: all that makes a difference (vol-56).
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
