package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	defaultSize = 4096 // entries of a cache

	// How often the API server is asked that can't answer, and the first wait.
	attempts   = 5
	firstPause = 500 * time.Millisecond
	pauseGrows = 1.5
)

// TokenReviews ask the API server whose token that is; client-go's
// AuthenticationV1().TokenReviews() does.
type TokenReviews interface {
	Create(ctx context.Context, review *authenticationv1.TokenReview, opts metav1.CreateOptions) (*authenticationv1.TokenReview, error)
}

// SubjectAccessReviews ask the API server who may do what; client-go's
// AuthorizationV1().SubjectAccessReviews() does.
type SubjectAccessReviews interface {
	Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, opts metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// Hooks tell of each question.
type Hooks struct {
	// Asked: whether the answer was known from before, how long it took, and
	// the error of the API server. Nil: nobody wants to know.
	Asked func(cached bool, took time.Duration, err error)
}

func (h Hooks) asked(cached bool, begun time.Time, err error) {
	if h.Asked != nil {
		h.Asked(cached, time.Since(begun), err)
	}
}

// TokensConfig configures Tokens.
type TokensConfig struct {
	// Reviews are asked. Required.
	Reviews TokenReviews

	// Audiences, one of which tokens must be for. Empty: the API server's.
	Audiences []string

	// TTL is how long a good token stays good without being asked about. Zero:
	// 2 min, as with the kubelet (sv-13); one that was revoked is taken for as
	// long. A bad one is asked about again after 10 s, or TTL if that is less.
	TTL time.Duration

	// Size bounds the good tokens that are cached, and the bad ones. Zero: 4096 of each.
	Size int

	// Hooks observe.
	Hooks Hooks
}

// Tokens knows users by their bearer tokens. It keeps no token: what it remembers
// is under a keyed hash.
type Tokens struct {
	cfg   TokensConfig
	key   []byte
	cache *cache[tokenAnswer]
}

type tokenAnswer struct {
	user *User
	why  string // there is no user
}

const badTokenTTL = 10 * time.Second

// NewTokens checks cfg.
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
// remote host, and another error if the API server could not be asked. A cached token
// is answered without waiting.
func (t *Tokens) Authenticate(r *http.Request) (*User, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, nil
	}
	begun := time.Now()
	mac := hmac.New(sha256.New, t.key)
	mac.Write([]byte(token))
	found, cached, err := t.cache.get(r.Context(), [32]byte(mac.Sum(nil)), remoteHost(r), func() (answer[tokenAnswer], error) {
		return t.ask(r.Context(), token)
	})
	t.cfg.Hooks.asked(cached, begun, err)
	switch {
	case err != nil:
		return nil, fmt.Errorf("auth: review a token: %w", err)
	case found.user == nil:
		return nil, fmt.Errorf("%w: the token is not good: %s", ErrUnauthorized, found.why)
	}
	return found.user, nil
}

// remoteHost returns the address of the client without its port.
func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func (t *Tokens) ask(ctx context.Context, token string) (answer[tokenAnswer], error) {
	review, err := again(ctx, func(ctx context.Context) (*authenticationv1.TokenReview, error) {
		return t.cfg.Reviews.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: t.cfg.Audiences}}, metav1.CreateOptions{})
	})
	if err != nil {
		return answer[tokenAnswer]{}, err
	}
	bad := func(why string) (answer[tokenAnswer], error) {
		return answer[tokenAnswer]{value: tokenAnswer{why: why}, ttl: min(badTokenTTL, t.cfg.TTL)}, nil
	}
	s := review.Status
	if !s.Authenticated {
		return bad(or(s.Error, "the API server rejects it"))
	}
	if len(t.cfg.Audiences) > 0 && !overlap(t.cfg.Audiences, s.Audiences) {
		// An old API server, which does not look at them.
		return bad("it is for another audience")
	}
	user := &User{Name: s.User.Username, UID: s.User.UID, Groups: in(s.User.Groups, AuthenticatedGroup)}
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

// AccessConfig configures Access.
type AccessConfig struct {
	// Reviews are asked. Required.
	Reviews SubjectAccessReviews

	// AllowedTTL and DeniedTTL are how long an answer counts. Zero: 5 min and
	// 30 s, as with the kubelet.
	AllowedTTL, DeniedTTL time.Duration

	// Size bounds the cached decisions that allow, and those that deny. Zero: 4096 of
	// each.
	Size int

	// Hooks observe.
	Hooks Hooks
}

// Access asks the API server who may do what.
type Access struct {
	cfg   AccessConfig
	cache *cache[Decision]
}

// NewAccess checks cfg.
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
func (a *Access) Authorize(ctx context.Context, user *User, what Attributes) (Decision, error) {
	if user == nil {
		return Decision{}, errors.New("auth: authorize: there is no user")
	}
	begun := time.Now()
	spec := specOf(user, what)
	// Maps are written in the order of their keys: equal questions are equal.
	data, err := json.Marshal(spec)
	if err != nil {
		return Decision{}, fmt.Errorf("auth: authorize: %w", err)
	}
	d, cached, err := a.cache.get(ctx, sha256.Sum256(data), user.Name, func() (answer[Decision], error) {
		review, err := again(ctx, func(ctx context.Context) (*authorizationv1.SubjectAccessReview, error) {
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
	a.cfg.Hooks.asked(cached, begun, err)
	if err != nil {
		return Decision{}, fmt.Errorf("auth: may %s %s: %w", user.Name, what, err)
	}
	return d, nil
}

func specOf(user *User, what Attributes) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{User: user.Name, UID: user.UID, Groups: user.Groups}
	for k, v := range user.Extra {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[k] = v
	}
	if what.Path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: what.Path, Verb: what.Verb}
		return spec
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Verb: what.Verb, Group: what.Group, Version: what.Version, Resource: what.Resource, Subresource: what.Subresource,
		Namespace: what.Namespace, Name: what.Name,
	}
	return spec
}

// again calls ask a few times while the API server fails for a reason that may pass. Each
// call has reviewTimeout, so that an API server that hangs does not keep reviews pending
// for as long as their clients wait.
func again[T any](ctx context.Context, ask func(context.Context) (T, error)) (answer T, err error) {
	pause := firstPause
	for try := 1; ; try++ {
		answer, err = timed(ctx, ask)
		if err == nil || try == attempts || !passes(err) {
			return answer, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return answer, errors.Join(err, ctx.Err())
		case <-timer.C:
		}
		pause = time.Duration(float64(pause) * pauseGrows)
	}
}

func timed[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	return ask(ctx)
}

// passes reports whether another call may succeed.
func passes(err error) bool {
	if isContext(err) {
		return false
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return true // the connection
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
