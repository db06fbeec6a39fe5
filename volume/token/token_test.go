package token_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/volume/token"
)

// A server gives out numbered tokens, unless it is away.
type server struct {
	mu    sync.Mutex
	given int
	away  error
	takes time.Duration
}

func (s *server) Token(_ context.Context, _, _ string, r *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return nil, s.away
	}
	s.given++
	r.Status.Token = fmt.Sprint("token ", s.given)
	r.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Duration(*r.Spec.ExpirationSeconds) * time.Second))
	return r, nil
}

func (s *server) setAway(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = err
}

func request(seconds int64, audience ...string) *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: audience, ExpirationSeconds: &seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "u1"},
	}}
}

func cache(t *testing.T, s *server) *token.Cache {
	t.Helper()
	c, err := token.New(token.Config{Get: s.Token})
	require.NoError(t, err)
	return c
}

// vol-56
func TestATokenIsReplacedInTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		seconds int64
		due     time.Duration
	}{
		{"vol-56 a fifth is left", 3600, 48 * time.Minute},
		{"vol-56 a fifth is left, the shortest", 600, 8 * time.Minute},
		{"vol-56 a day old", 7 * 86400, 24 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := new(server)
				tokens := cache(t, s)
				first, err := tokens.Token(t.Context(), "ns", "sa", request(c.seconds))
				require.NoError(t, err)
				due := time.Until(first.RefreshAt)
				assert.LessOrEqual(t, due, c.due)
				assert.Greater(t, due, c.due-10*time.Second-time.Nanosecond)

				time.Sleep(due - time.Second)
				again, err := tokens.Token(t.Context(), "ns", "sa", request(c.seconds))
				require.NoError(t, err)
				assert.Equal(t, first, again)

				time.Sleep(time.Second)
				next, err := tokens.Token(t.Context(), "ns", "sa", request(c.seconds))
				require.NoError(t, err)
				assert.Equal(t, "token 2", next.Value)
			})
		})
	}
}

// vol-56
func TestATokenWhoseReplacementFailsIsGoodUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		var failures int
		tokens, err := token.New(token.Config{Get: s.Token, Failed: func(string, string, error) { failures++ }})
		require.NoError(t, err)
		first, err := tokens.Token(t.Context(), "ns", "sa", request(600))
		require.NoError(t, err)
		s.setAway(errors.New("connection refused"))
		for now := first; time.Now().Before(first.Expiration.Add(-time.Second)); {
			time.Sleep(time.Until(now.RefreshAt))
			if !time.Now().Before(first.Expiration) {
				break
			}
			now, err = tokens.Token(t.Context(), "ns", "sa", request(600))
			require.NoError(t, err)
			require.Equal(t, "token 1", now.Value)
			require.True(t, now.RefreshAt.After(time.Now()))
		}
		assert.Equal(t, 5, failures, "every 30 s of the last two minutes, the first up to 10 s before")
		time.Sleep(time.Until(first.Expiration))
		_, err = tokens.Token(t.Context(), "ns", "sa", request(600))
		require.EqualError(t, err, `token "ns"/"sa"/[]/600/"v1" "Pod" "web" "u1" expired and refresh failed: connection refused`)

		s.setAway(nil)
		next, err := tokens.Token(t.Context(), "ns", "sa", request(600))
		require.NoError(t, err)
		assert.Equal(t, "token 2", next.Value)
	})
}

// vol-56
func TestNoTokenYetIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{away: errors.New("forbidden")}
		tokens := cache(t, s)
		_, err := tokens.Token(t.Context(), "ns", "sa", request(600))
		require.EqualError(t, err, "failed to fetch token: forbidden")
		s.setAway(nil)
		_, err = tokens.Token(t.Context(), "ns", "sa", request(600))
		require.NoError(t, err, "there is no back-off before the first")
		_, err = tokens.Token(t.Context(), "ns", "sa", nil)
		require.Error(t, err)
	})
}

// vol-56
func TestWhatDiffersGetsATokenOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		tokens := cache(t, s)
		other := request(600)
		other.Spec.BoundObjectRef.UID = "u2"
		for _, ask := range []func() (token.Token, error){
			func() (token.Token, error) { return tokens.Token(t.Context(), "ns", "sa", request(600)) },
			func() (token.Token, error) { return tokens.Token(t.Context(), "ns2", "sa", request(600)) },
			func() (token.Token, error) { return tokens.Token(t.Context(), "ns", "sa2", request(600)) },
			func() (token.Token, error) { return tokens.Token(t.Context(), "ns", "sa", request(601)) },
			func() (token.Token, error) { return tokens.Token(t.Context(), "ns", "sa", request(600, "a")) },
			func() (token.Token, error) { return tokens.Token(t.Context(), "ns", "sa", request(600, "a", "b")) },
			func() (token.Token, error) { return tokens.Token(t.Context(), "ns", "sa", other) },
		} {
			got, err := ask()
			require.NoError(t, err)
			again, err := ask()
			require.NoError(t, err)
			assert.Equal(t, got, again)
		}
		assert.Equal(t, 7, s.given)
		tokens.Forget("u1")
		assert.Equal(t, 1, tokens.Len(), "those of a pod go with it")
		time.Sleep(time.Hour)
		_, err := tokens.Token(t.Context(), "ns", "sa", request(600))
		require.NoError(t, err)
		assert.Equal(t, 1, tokens.Len(), "those that have ended go")
	})
}

func TestManyAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: time.Second}
		tokens := cache(t, s)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				got, err := tokens.Token(t.Context(), "ns", "sa", request(600))
				assert.NoError(t, err)
				assert.Equal(t, "token 1", got.Value)
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := tokens.Token(ctx, "ns", "sa", request(600))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		wg.Wait()
		assert.Equal(t, 1, s.given)
	})
}
