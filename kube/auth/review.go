package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/compose"
)

const (
	defaultSize = 4096 // entries of a cache

	// Attempts of a review, and the backoff between them.
	attempts      = 5
	firstBackoff  = 500 * time.Millisecond
	backoffFactor = 1.5
)

// TokenReviews creates token reviews; client-go's AuthenticationV1().TokenReviews()
// implements it.
type TokenReviews interface {
	Create(ctx context.Context, review *authenticationv1.TokenReview, opts metav1.CreateOptions) (*authenticationv1.TokenReview, error)
}

// SubjectAccessReviews creates access reviews; client-go's
// AuthorizationV1().SubjectAccessReviews() implements it.
type SubjectAccessReviews interface {
	Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, opts metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// Hooks are called by Tokens and Access. They must not block.
type Hooks struct {
	// Reviewed is called for each request with a token or to be authorized: whether the
	// result was cached, the duration, and the error of the API server. May be nil.
	Reviewed func(cached bool, took time.Duration, err error)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add3(&h.Reviewed, o.Reviewed)
	}
	return h
}

func (h Hooks) reviewed(cached bool, start time.Time, err error) {
	if h.Reviewed != nil {
		h.Reviewed(cached, time.Since(start), err)
	}
}

// A TokensConfig configures Tokens.
type TokensConfig struct {
	// Reviews is the client of token reviews. It should have its own rate limit. Required.
	Reviews TokenReviews

	// Audiences are the accepted audiences of tokens, of which one must match. Empty: those
	// of the API server.
	Audiences []string

	// TTL is the duration for which a valid token is cached, even if it is revoked. Zero:
	// 2m, as with the kubelet. An invalid token is cached for 10 s, or TTL if that is less.
	TTL time.Duration

	// Size bounds the good tokens that are cached, and the bad ones. Zero: 4096 of each.
	Size int

	// Hooks are called for each token.
	Hooks Hooks
}

// Tokens authenticates users by bearer tokens. Tokens are not stored: the keys of the cache
// are keyed hashes.
type Tokens struct {
	cfg   TokensConfig
	key   []byte
	cache *cache[tokenAnswer]
}

type tokenAnswer struct {
	user   *User
	reason string // the token is invalid
}

const badTokenTTL = 10 * time.Second

// NewTokens returns a Tokens, or an error if Reviews is nil. It starts nothing.
func NewTokens(cfg TokensConfig) (*Tokens, error) {
	if cfg.Reviews == nil {
		return nil, errors.New("auth: TokensConfig.Reviews is nil")
	}
	if cfg.TTL == 0 {
		cfg.TTL = 2 * time.Minute
	}
	if cfg.Size == 0 {
		cfg.Size = defaultSize
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("auth: random key: %w", err)
	}
	return &Tokens{cfg: cfg, key: key, cache: newCache[tokenAnswer](cfg.Size)}, nil
}

// Authenticate implements Authenticator. It returns ErrUnauthorized for a token that
// the API server rejects, ErrTooManyReviews if too many are pending in all or from the
// remote host (for IPv6 its /64), and another error if the review failed. A cached token
// is answered without waiting.
func (t *Tokens) Authenticate(r *http.Request) (*User, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, nil
	}
	start := time.Now()
	mac := hmac.New(sha256.New, t.key)
	mac.Write([]byte(token))
	found, cached, err := t.cache.get(r.Context(), [32]byte(mac.Sum(nil)), ClientKey(r.RemoteAddr), func() (answer[tokenAnswer], error) {
		return t.review(r.Context(), token)
	})
	t.cfg.Hooks.reviewed(cached, start, err)
	switch {
	case err != nil:
		return nil, fmt.Errorf("auth: review token: %w", err)
	case found.user == nil:
		return nil, fmt.Errorf("%w: invalid token: %s", ErrUnauthorized, found.reason)
	}
	return found.user, nil
}

func (t *Tokens) review(ctx context.Context, token string) (answer[tokenAnswer], error) {
	review, err := withRetries(ctx, func(ctx context.Context) (*authenticationv1.TokenReview, error) {
		return t.cfg.Reviews.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: t.cfg.Audiences}}, metav1.CreateOptions{})
	})
	if err != nil {
		return answer[tokenAnswer]{}, err
	}
	invalid := func(reason string) (answer[tokenAnswer], error) {
		return answer[tokenAnswer]{value: tokenAnswer{reason: reason}, ttl: min(badTokenTTL, t.cfg.TTL)}, nil
	}
	s := review.Status
	if !s.Authenticated {
		return invalid(or(s.Error, "the API server rejects it"))
	}
	if len(t.cfg.Audiences) > 0 && !overlap(t.cfg.Audiences, s.Audiences) {
		// Old API servers ignore audiences.
		return invalid("it is for another audience")
	}
	user := &User{Name: s.User.Username, UID: s.User.UID, Groups: withGroup(s.User.Groups, AuthenticatedGroup)}
	for k, v := range s.User.Extra {
		if user.Extra == nil {
			user.Extra = map[string][]string{}
		}
		user.Extra[k] = v
	}
	return answer[tokenAnswer]{value: tokenAnswer{user: user}, good: true, ttl: t.cfg.TTL}, nil
}

func overlap(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				return true
			}
		}
	}
	return false
}

// An AccessConfig configures Access.
type AccessConfig struct {
	// Reviews is the client of access reviews. It should have its own rate limit. Required.
	Reviews SubjectAccessReviews

	// AllowedTTL and DeniedTTL are the durations for which decisions are cached. Zero: 5m
	// and 30s, as with the kubelet.
	AllowedTTL, DeniedTTL time.Duration

	// Size bounds the cached decisions that allow, and those that deny. Zero: 4096 of
	// each.
	Size int

	// Hooks are called for each authorization.
	Hooks Hooks
}

// Access authorizes operations by access reviews of the API server.
type Access struct {
	cfg   AccessConfig
	cache *cache[Decision]
}

// NewAccess returns an Access, or an error if Reviews is nil. It starts nothing.
func NewAccess(cfg AccessConfig) (*Access, error) {
	if cfg.Reviews == nil {
		return nil, errors.New("auth: AccessConfig.Reviews is nil")
	}
	if cfg.AllowedTTL == 0 {
		cfg.AllowedTTL = 5 * time.Minute
	}
	if cfg.DeniedTTL == 0 {
		cfg.DeniedTTL = 30 * time.Second
	}
	if cfg.Size == 0 {
		cfg.Size = defaultSize
	}
	return &Access{cfg: cfg, cache: newCache[Decision](cfg.Size)}, nil
}

// Authorize implements Authorizer. It returns ErrTooManyReviews if too many are pending
// in all or for the user. A cached decision is returned without waiting.
func (a *Access) Authorize(ctx context.Context, user *User, attributes Attributes) (Decision, error) {
	if user == nil {
		return Decision{}, errors.New("auth: authorize: user is nil")
	}
	start := time.Now()
	spec := specOf(user, attributes)
	// Maps are encoded in the order of their keys, so that equal specs have equal keys.
	data, err := json.Marshal(spec)
	if err != nil {
		return Decision{}, fmt.Errorf("auth: authorize: %w", err)
	}
	d, cached, err := a.cache.get(ctx, sha256.Sum256(data), user.Name, func() (answer[Decision], error) {
		review, err := withRetries(ctx, func(ctx context.Context) (*authorizationv1.SubjectAccessReview, error) {
			return a.cfg.Reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		})
		if err != nil {
			return answer[Decision]{}, err
		}
		s := review.Status
		d := Decision{Allowed: s.Allowed && !s.Denied, Reason: s.Reason}
		switch {
		case d.Allowed:
			return answer[Decision]{value: d, good: true, ttl: a.cfg.AllowedTTL}, nil
		case s.EvaluationError != "" && !s.Denied:
			d.Reason = or(d.Reason, s.EvaluationError)
		}
		return answer[Decision]{value: d, ttl: a.cfg.DeniedTTL}, nil
	})
	a.cfg.Hooks.reviewed(cached, start, err)
	if err != nil {
		return Decision{}, fmt.Errorf("auth: authorize %s to %s: %w", user.Name, attributes, err)
	}
	return d, nil
}

func specOf(user *User, attributes Attributes) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{User: user.Name, UID: user.UID, Groups: user.Groups}
	for k, v := range user.Extra {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[k] = v
	}
	if attributes.Path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: attributes.Path, Verb: attributes.Verb}
		return spec
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Verb: attributes.Verb, Group: attributes.Group, Version: attributes.Version, Resource: attributes.Resource, Subresource: attributes.Subresource,
		Namespace: attributes.Namespace, Name: attributes.Name,
	}
	return spec
}

// withRetries calls review, with a few retries while the API server fails temporarily. Each
// call is bounded by reviewTimeout, so that an API server that hangs does not keep reviews
// pending for as long as their clients wait.
func withRetries[T any](ctx context.Context, review func(context.Context) (T, error)) (answer T, err error) {
	backoff := firstBackoff
	for try := 1; ; try++ {
		answer, err = withTimeout(ctx, review)
		if err == nil || try == attempts || !isTemporary(err) {
			return answer, err
		}
		timer := time.NewTimer(backoff)
		select {
		case <-ctx.Done():
			timer.Stop()
			return answer, errors.Join(err, ctx.Err())
		case <-timer.C:
		}
		backoff = time.Duration(float64(backoff) * backoffFactor)
	}
}

func withTimeout[T any](ctx context.Context, review func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	return review(ctx)
}

// isTemporary reports whether another call may succeed.
func isTemporary(err error) bool {
	if isContext(err) {
		return false
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return true // an error of the connection
	}
	code := status.Status().Code
	return code >= 500 || code == http.StatusTooManyRequests
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
