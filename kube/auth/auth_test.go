package auth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/auth"
)

// tokens is an API server that reviews tokens: a user by token, "" for an invalid
// one.
type tokens struct {
	mu    sync.Mutex
	asked []string
	takes time.Duration
	fails []error // the next answers
	audit []string
}

func (f *tokens) Create(ctx context.Context, r *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	f.mu.Lock()
	f.asked = append(f.asked, r.Spec.Token)
	var err error
	if len(f.fails) > 0 {
		err, f.fails = f.fails[0], f.fails[1:]
	}
	f.mu.Unlock()
	if f.takes > 0 {
		select {
		case <-time.After(f.takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	out := r.DeepCopy()
	out.Status.Audiences = f.audit
	if name, ok := map[string]string{"t-ann": "ann", "t-bob": "bob"}[r.Spec.Token]; ok {
		out.Status.Authenticated = true
		out.Status.User = authenticationv1.UserInfo{Username: name, UID: "u", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
	} else {
		out.Status.Error = "unknown token"
	}
	return out, nil
}

func (f *tokens) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

func bearer(ctx context.Context, token string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/pods", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func newTokens(t *testing.T, cfg auth.TokensConfig) *auth.Tokens {
	t.Helper()
	a, err := auth.NewTokens(cfg)
	require.NoError(t, err)
	return a
}

func TestTokenReviewsAreCachedForTwoMinutes(t *testing.T) { // sv-13
	synctest.Test(t, func(t *testing.T) {
		api := new(tokens)
		a := newTokens(t, auth.TokensConfig{Reviews: api})
		for range 3 {
			user, err := a.Authenticate(bearer(t.Context(), "t-ann"))
			require.NoError(t, err)
			assert.Equal(t, &auth.User{Name: "ann", UID: "u", Groups: []string{"g", auth.AuthenticatedGroup}, Extra: map[string][]string{"k": {"v"}}}, user)
			time.Sleep(30 * time.Second)
		}
		assert.Equal(t, 1, api.count())
		time.Sleep(time.Minute)
		_, err := a.Authenticate(bearer(t.Context(), "t-ann"))
		require.NoError(t, err)
		assert.Equal(t, 2, api.count())

		user, err := a.Authenticate(bearer(t.Context(), ""))
		assert.Nil(t, user)
		assert.NoError(t, err, "no credentials are not an error")
	})
}

func TestABadTokenIsAnErrorAndCached(t *testing.T) { // sv-13
	synctest.Test(t, func(t *testing.T) {
		api := new(tokens)
		a := newTokens(t, auth.TokensConfig{Reviews: api})
		for range 50 {
			_, err := a.Authenticate(bearer(t.Context(), "stolen"))
			require.ErrorIs(t, err, auth.ErrUnauthorized)
			require.ErrorContains(t, err, "unknown token")
			require.NotContains(t, err.Error(), "stolen", "a token is nothing to be logged")
		}
		assert.Equal(t, 1, api.count())
		time.Sleep(11 * time.Second)
		_, err := a.Authenticate(bearer(t.Context(), "stolen"))
		require.ErrorIs(t, err, auth.ErrUnauthorized)
		assert.Equal(t, 2, api.count())
	})
}

func TestABadTokenIsNotCachedForLongerThanAGoodOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(tokens)
		a := newTokens(t, auth.TokensConfig{Reviews: api, TTL: 3 * time.Second})
		for n := 1; n <= 3; n++ {
			for range 2 {
				_, err := a.Authenticate(bearer(t.Context(), "late"))
				require.ErrorIs(t, err, auth.ErrUnauthorized)
				assert.Equal(t, n, api.count())
				time.Sleep(2 * time.Second)
			}
		}
	})
}

func TestConcurrentRequestsWithOneTokenShareAReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &tokens{takes: time.Second}
		a := newTokens(t, auth.TokensConfig{Reviews: api})
		first, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := a.Authenticate(bearer(first, "t-ann"))
			assert.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		for range 20 {
			wg.Go(func() {
				user, err := a.Authenticate(bearer(t.Context(), "t-ann"))
				if assert.NoError(t, err) {
					assert.Equal(t, "ann", user.Name)
				}
			})
		}
		synctest.Wait()
		cancel() // the first caller leaves; the others still wait
		wg.Wait()
		assert.Equal(t, 2, api.count())
	})
}

func TestAFailedReviewIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unavailable := apierrors.NewServiceUnavailable("starting")
		api := &tokens{fails: []error{errors.New("connection refused"), unavailable, apierrors.NewTooManyRequests("slow down", 1)}}
		a := newTokens(t, auth.TokensConfig{Reviews: api})
		user, err := a.Authenticate(bearer(t.Context(), "t-bob"))
		require.NoError(t, err)
		assert.Equal(t, "bob", user.Name)

		api.fails = []error{apierrors.NewForbidden(authorizationv1.Resource("x"), "x", errors.New("no"))}
		asked := api.count()
		_, err = a.Authenticate(bearer(t.Context(), "t-ann"))
		require.Error(t, err)
		assert.NotErrorIs(t, err, auth.ErrUnauthorized, "an unavailable review is no decision")
		assert.Equal(t, asked+1, api.count(), "unauthorized is cached")
		_, err = a.Authenticate(bearer(t.Context(), "t-ann"))
		require.NoError(t, err, "an error is not kept")

		api.fails = []error{unavailable, unavailable, unavailable, unavailable, unavailable, unavailable}
		asked = api.count()
		_, err = a.Authenticate(bearer(t.Context(), "else"))
		require.Error(t, err)
		assert.Equal(t, asked+5, api.count(), "not forever")
	})
}

func TestATokenForAnotherAudienceIsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(tokens)
		a := newTokens(t, auth.TokensConfig{Reviews: api, Audiences: []string{"node"}})
		_, err := a.Authenticate(bearer(t.Context(), "t-ann"))
		require.ErrorIs(t, err, auth.ErrUnauthorized)
		api.audit = []string{"node"}
		time.Sleep(11 * time.Second)
		_, err = a.Authenticate(bearer(t.Context(), "t-ann"))
		require.NoError(t, err)
	})
}

func TestTheCacheIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(tokens)
		a := newTokens(t, auth.TokensConfig{Reviews: api, Size: 10})
		for i := range 1000 {
			_, err := a.Authenticate(bearer(t.Context(), fmt.Sprint(i)))
			require.Error(t, err)
		}
		asked := api.count()
		for i := range 1000 {
			_, _ = a.Authenticate(bearer(t.Context(), fmt.Sprint(i)))
		}
		assert.GreaterOrEqual(t, api.count(), asked+990)
	})
}

// access is an API server where only ann may do anything, and only get.
type access struct {
	mu    sync.Mutex
	asked []authorizationv1.SubjectAccessReviewSpec
	err   error

	denied bool // by one authorizer, although another one allows it
}

func (f *access) Create(_ context.Context, r *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.Spec)
	if f.err != nil {
		return nil, f.err
	}
	out := r.DeepCopy()
	verb := ""
	if r.Spec.ResourceAttributes != nil {
		verb = r.Spec.ResourceAttributes.Verb
	} else {
		verb = r.Spec.NonResourceAttributes.Verb
	}
	out.Status.Allowed = r.Spec.User == "ann" && verb == "get"
	out.Status.Denied, out.Status.Reason = f.denied, "because"
	return out, nil
}

func TestAccessReviewsAreCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(access)
		a, err := auth.NewAccess(auth.AccessConfig{Reviews: api})
		require.NoError(t, err)
		ann := &auth.User{Name: "ann", Groups: []string{"g"}, Extra: map[string][]string{"b": {"2"}, "a": {"1"}}}
		get := auth.Attributes{Verb: "get", Version: "v1", Resource: "nodes", Subresource: "proxy", Name: "n1"}
		create := get
		create.Verb = "create"
		ask := func(user *auth.User, what auth.Attributes) bool {
			d, err := a.Authorize(t.Context(), user, what)
			require.NoError(t, err)
			return d.Allowed
		}
		for range 4 {
			assert.True(t, ask(ann, get))
			assert.False(t, ask(ann, create))
			assert.False(t, ask(&auth.User{Name: "bob"}, get))
		}
		require.Len(t, api.asked, 3)
		assert.Equal(t, authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "nodes", Subresource: "proxy", Name: "n1"}, *api.asked[0].ResourceAttributes)
		assert.Equal(t, authorizationv1.ExtraValue{"1"}, api.asked[0].Extra["a"])
		time.Sleep(31 * time.Second)
		ask(ann, get)
		ask(ann, create)
		assert.Len(t, api.asked, 4, "a denial expires after 30 s")
		time.Sleep(5 * time.Minute)
		ask(ann, get)
		assert.Len(t, api.asked, 5, "a permission expires after 5 min")
		assert.True(t, ask(ann, auth.Attributes{Verb: "get", Path: "/healthz"}))

		api.err = apierrors.NewBadRequest("what?")
		_, err = a.Authorize(t.Context(), &auth.User{Name: "eve"}, get)
		assert.ErrorContains(t, err, "authorize eve to get nodes/proxy n1")
		_, err = a.Authorize(t.Context(), nil, get)
		assert.Error(t, err)
	})
}

func TestADenialOverridesAPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &access{denied: true}
		a, err := auth.NewAccess(auth.AccessConfig{Reviews: api})
		require.NoError(t, err)
		ask := func() auth.Decision {
			d, err := a.Authorize(t.Context(), &auth.User{Name: "ann"}, auth.Attributes{Verb: "get", Resource: "nodes"})
			require.NoError(t, err)
			return d
		}
		assert.Equal(t, auth.Decision{Reason: "because"}, ask())
		api.denied = false
		assert.False(t, ask().Allowed, "cached")
		time.Sleep(31 * time.Second)
		assert.True(t, ask().Allowed, "a denial is cached for 30 s")
	})
}

func TestOneAllowedAttributeIsSufficient(t *testing.T) { // sv-16
	api := new(access)
	a, err := auth.NewAccess(auth.AccessConfig{Reviews: api})
	require.NoError(t, err)
	ann := &auth.User{Name: "ann"}
	d, err := auth.Any(t.Context(), a, ann, auth.Attributes{Verb: "list", Resource: "a"}, auth.Attributes{Verb: "get", Resource: "b"})
	require.NoError(t, err)
	assert.True(t, d.Allowed)
	d, err = auth.Any(t.Context(), a, ann, auth.Attributes{Verb: "list", Resource: "a"})
	require.NoError(t, err)
	assert.False(t, d.Allowed)
	api.err = apierrors.NewBadRequest("what?")
	d, err = auth.Any(t.Context(), a, ann, auth.Attributes{Verb: "list", Resource: "a"}, auth.Attributes{Verb: "list", Resource: "c"})
	assert.Error(t, err, "one of them is not known")
	assert.False(t, d.Allowed)
	d, err = auth.AlwaysAllow{}.Authorize(t.Context(), nil, auth.Attributes{})
	assert.True(t, d.Allowed)
	assert.NoError(t, err)
}

func certificateOf(t *testing.T, name string, usage x509.ExtKeyUsage, groups ...string) (*x509.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: groups}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return cert, pool
}

func TestACertificateIdentifiesItsUser(t *testing.T) { // sv-13
	cert, pool := certificateOf(t, "ann", x509.ExtKeyUsageClientAuth, "g1", "g2")
	_, other := certificateOf(t, "ann", x509.ExtKeyUsageClientAuth)
	serving, servers := certificateOf(t, "ann", x509.ExtKeyUsageServerAuth)
	ask := func(c *x509.Certificate, roots *x509.CertPool) (*auth.User, error) {
		r := bearer(t.Context(), "")
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}}
		return auth.Certificates{Roots: func() *x509.CertPool { return roots }}.Authenticate(r)
	}
	user, err := ask(cert, pool)
	require.NoError(t, err)
	assert.Equal(t, &auth.User{Name: "ann", Groups: []string{"g1", "g2", auth.AuthenticatedGroup}}, user)
	for name, try := range map[string]struct {
		cert  *x509.Certificate
		roots *x509.CertPool
	}{"signed by another CA": {cert, other}, "not a client's": {serving, servers}, "self-signed": {cert, nil}} {
		user, err := ask(try.cert, try.roots)
		assert.Error(t, err, name)
		assert.Nil(t, user, name)
	}
	user, err = auth.Certificates{}.Authenticate(bearer(t.Context(), ""))
	assert.Nil(t, user)
	assert.NoError(t, err)
}

func TestTheChainContinuesAfterADenial(t *testing.T) { // sv-13
	api := new(tokens)
	cert, _ := certificateOf(t, "eve", x509.ExtKeyUsageClientAuth)
	chain := auth.Chain{auth.Certificates{Roots: x509.NewCertPool}, newTokens(t, auth.TokensConfig{Reviews: api}), auth.Anonymous{}}
	r := bearer(t.Context(), "t-ann")
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	user, err := chain.Authenticate(r)
	require.NoError(t, err)
	assert.Equal(t, "ann", user.Name)

	user, err = chain.Authenticate(bearer(t.Context(), ""))
	require.NoError(t, err)
	assert.Equal(t, &auth.User{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}, user)
	_, err = chain.Authenticate(bearer(t.Context(), "bad"))
	assert.ErrorIs(t, err, auth.ErrUnauthorized, "an invalid certificate is not treated as none")
	r.Header.Del("Authorization")
	_, err = chain.Authenticate(r)
	assert.ErrorIs(t, err, auth.ErrUnauthorized)
	_, err = auth.Chain{}.Authenticate(r)
	assert.ErrorIs(t, err, auth.ErrUnauthorized)

	chain = auth.Chain{auth.Certificates{}, auth.Anonymous{}}
	user, err = chain.Authenticate(bearer(t.Context(), "t-ann"))
	require.NoError(t, err)
	assert.Equal(t, "system:anonymous", user.Name, "nothing examines tokens")
}

func TestNewNamesMissingFields(t *testing.T) {
	_, err := auth.NewTokens(auth.TokensConfig{})
	assert.ErrorContains(t, err, "Reviews is nil")
	_, err = auth.NewAccess(auth.AccessConfig{})
	assert.ErrorContains(t, err, "Reviews is nil")
}
