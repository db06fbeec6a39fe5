package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/auth"
)

// from returns a request of a remote host with a token.
func from(ctx context.Context, host, token string) *http.Request {
	r := bearer(ctx, token)
	r.RemoteAddr = host + ":4711"
	return r
}

// outcomes counts the results of many calls.
type outcomes struct {
	mu      sync.Mutex
	refused int // with ErrTooManyReviews, without any wait
	other   []error
}

func (o *outcomes) add(begun time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(err, auth.ErrTooManyReviews) && time.Since(begun) == 0 {
		o.refused++
		return
	}
	o.other = append(o.other, err)
}

func (o *outcomes) now() (refused, other int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refused, len(o.other)
}

func TestBadTokensEvictNoGoodOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(tokens)
		a := newTokens(t, auth.TokensConfig{Reviews: api, Size: 10})
		_, err := a.Authenticate(bearer(t.Context(), "t-ann"))
		require.NoError(t, err)
		for i := range 1000 {
			_, err := a.Authenticate(bearer(t.Context(), fmt.Sprint(i)))
			require.ErrorIs(t, err, auth.ErrUnauthorized)
		}
		asked := api.count()
		_, err = a.Authenticate(bearer(t.Context(), "t-ann"))
		require.NoError(t, err)
		assert.Equal(t, asked, api.count(), "the good token is still cached")
	})
}

// One remote host has at most 16 reviews in progress, all together 64. All others are
// rejected at once, and cached tokens are accepted at once.
func TestAFloodOfBadTokensIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(tokens)
		a := newTokens(t, auth.TokensConfig{Reviews: api, Size: 100, TTL: time.Hour})
		_, err := a.Authenticate(from(t.Context(), "10.0.0.1", "t-ann"))
		require.NoError(t, err)
		api.takes = 9 * time.Second
		for round := 1; round <= 2; round++ { // the slots of pending reviews are released
			asked := api.count()
			var got outcomes
			var wg sync.WaitGroup
			flood := func(host string, n int) {
				for i := range n {
					wg.Go(func() {
						begun := time.Now()
						_, err := a.Authenticate(from(t.Context(), host, fmt.Sprint(round, host, i)))
						got.add(begun, err)
					})
				}
				synctest.Wait()
			}
			flood("10.0.0.66", 5000)
			assert.Equal(t, asked+16, api.count(), "reviews of one host")
			refused, other := got.now()
			assert.Equal(t, 5000-16, refused)
			assert.Zero(t, other)

			begun := time.Now()
			user, err := a.Authenticate(from(t.Context(), "10.0.0.66", "t-ann"))
			require.NoError(t, err)
			assert.Equal(t, "ann", user.Name)
			assert.Zero(t, time.Since(begun), "a cached token waits for nothing")

			if round == 1 {
				user, err = a.Authenticate(from(t.Context(), "10.0.0.1", "t-bob"))
				require.NoError(t, err, "another host has a separate limit")
				assert.Equal(t, "bob", user.Name)
			}
			wg.Wait()
			asked, got = api.count(), outcomes{}
			for host := range 100 {
				flood(fmt.Sprintf("10.0.1.%d", host), 10)
			}
			assert.Equal(t, asked+64, api.count(), "reviews of all hosts")
			refused, _ = got.now()
			assert.Equal(t, 1000-64, refused)
			wg.Wait()
			for _, err := range got.other {
				require.ErrorIs(t, err, auth.ErrUnauthorized)
			}
			time.Sleep(time.Minute) // the bad ones expire
		}
	})
}

// Requests that share one review are bounded as well.
func TestRequestsThatShareAReviewAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &tokens{takes: time.Second}
		a := newTokens(t, auth.TokensConfig{Reviews: api})
		var got outcomes
		var wg sync.WaitGroup
		for i := range 5000 {
			wg.Go(func() {
				begun := time.Now()
				_, err := a.Authenticate(from(t.Context(), fmt.Sprintf("10.0.0.%d", i%2), "t-ann"))
				got.add(begun, err)
			})
		}
		wg.Wait()
		refused, answered := got.now()
		assert.Equal(t, 2*256, answered)
		assert.Equal(t, 5000-2*256, refused)
		for _, err := range got.other {
			require.NoError(t, err)
		}
		assert.Equal(t, 1, api.count())
	})
}

// An API server that hangs keeps reviews pending for ten seconds, not for as long as
// clients wait.
func TestAReviewEndsAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &tokens{takes: time.Hour}
		a := newTokens(t, auth.TokensConfig{Reviews: api})
		var wg sync.WaitGroup
		begun := time.Now()
		for range 3 { // the calls that share it fail with it
			wg.Go(func() {
				_, err := a.Authenticate(bearer(t.Context(), "t-ann"))
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		wg.Wait()
		assert.Equal(t, 10*time.Second, time.Since(begun))
		assert.Equal(t, 1, api.count())
		api.takes = 0
		_, err := a.Authenticate(bearer(t.Context(), "t-ann"))
		require.NoError(t, err)
	})
}

// slowAccess allows everything, after a while.
type slowAccess struct {
	asked atomic.Int64
	takes atomic.Int64 // a time.Duration
}

func (s *slowAccess) Create(ctx context.Context, r *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	s.asked.Add(1)
	select {
	case <-time.After(time.Duration(s.takes.Load())):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r = r.DeepCopy()
	r.Status.Allowed = true
	return r, nil
}

func TestOneUserKeepsNoOtherFromAnAccessReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(slowAccess)
		a, err := auth.NewAccess(auth.AccessConfig{Reviews: api})
		require.NoError(t, err)
		may := func(user, path string) error {
			_, err := a.Authorize(t.Context(), &auth.User{Name: user}, auth.Attributes{Verb: "get", Path: path})
			return err
		}
		require.NoError(t, may("eve", "/cached"))
		api.takes.Store(int64(time.Second))
		var got outcomes
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				begun := time.Now()
				got.add(begun, may("eve", fmt.Sprint(i)))
			})
		}
		synctest.Wait()
		refused, _ := got.now()
		assert.Equal(t, 1000-16, refused)
		begun := time.Now()
		require.NoError(t, may("eve", "/cached"))
		assert.Zero(t, time.Since(begun))
		require.NoError(t, may("ann", "/"))
		wg.Wait()
		assert.EqualValues(t, 1+16+1, api.asked.Load())
	})
}
