//go:build unix

package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/server"
)

// slowReviews is an API server behind client-go's default rate limit. It answers each
// review after 200 ms; tokens that begin with "good" are authenticated.
type slowReviews struct {
	limit   flowcontrol.RateLimiter
	reviews *atomic.Int64
}

func (s slowReviews) answer(ctx context.Context) error {
	if err := s.limit.Wait(ctx); err != nil {
		return err
	}
	s.reviews.Add(1)
	select {
	case <-time.After(200 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type slowTokens struct{ slowReviews }

func (s slowTokens) Create(ctx context.Context, r *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	if err := s.answer(ctx); err != nil {
		return nil, err
	}
	r = r.DeepCopy()
	r.Status.Authenticated = strings.HasPrefix(r.Spec.Token, "good")
	r.Status.User.Username = r.Spec.Token
	return r, nil
}

type slowAccess struct{ slowReviews }

func (s slowAccess) Create(ctx context.Context, r *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	if err := s.answer(ctx); err != nil {
		return nil, err
	}
	r = r.DeepCopy()
	r.Status.Allowed = true
	return r, nil
}

// measured are the latencies of one kind of request.
type measured struct {
	name      string
	latencies []time.Duration
	failed    int
}

// The latency of good tokens during a flood of bad ones, over TLS on loopback. The flood
// comes from 127.0.0.1, good tokens from 127.0.0.2 and from 127.0.0.1.
func TestGoodTokensAreAnsweredDuringAFloodOfBadOnes(t *testing.T) {
	if os.Getenv("KUBEPARTS_FLOOD") == "" {
		t.Skip("measures for half a minute; set KUBEPARTS_FLOOD=1 to run it")
	}
	const connections = 5_500
	ca := newIssuer(t, "ca")
	pair, err := tls.X509KeyPair(ca.sign("n1", x509.ExtKeyUsageServerAuth))
	require.NoError(t, err)
	var reviews atomic.Int64
	limit := func() slowReviews {
		return slowReviews{flowcontrol.NewTokenBucketRateLimiter(50, 300), &reviews}
	}
	tokens, err := auth.NewTokens(auth.TokensConfig{Reviews: slowTokens{limit()}})
	require.NoError(t, err)
	access, err := auth.NewAccess(auth.AccessConfig{Reviews: slowAccess{limit()}})
	require.NoError(t, err)
	addr := listen(t, server.ListenerConfig{
		Handler: newServer(t, func(c *server.Config) { c.Authenticator, c.Authorizer = auth.Chain{tokens}, access }),
		TLS:     server.TLSConfig{Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }},
	})
	config := ca.client(nil, "").Transport.(*http.Transport).TLSClientConfig
	from := func(host string, keepAlive bool) *http.Client {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
		transport := &http.Transport{TLSClientConfig: config.Clone(), DialContext: dialer.DialContext, DisableKeepAlives: !keepAlive}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: 90 * time.Second}
	}
	ask := func(client *http.Client, token string) (time.Duration, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+"/pods", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		begun := time.Now()
		answer, err := client.Do(r)
		if err != nil {
			return time.Since(begun), err
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		if answer.StatusCode != http.StatusOK {
			return time.Since(begun), fmt.Errorf("%s: %s", token, answer.Status)
		}
		return time.Since(begun), nil
	}

	_, err = ask(from("127.0.0.2", false), "good-cached")
	require.NoError(t, err)
	measure := func(client *http.Client, stop <-chan struct{}) (latencies []time.Duration, failed int) {
		for {
			select {
			case <-stop:
				return latencies, failed
			case <-time.After(10 * time.Millisecond):
			}
			took, err := ask(client, "good-cached")
			if err != nil {
				failed++
			}
			latencies = append(latencies, took)
		}
	}

	calm := make(chan struct{})
	time.AfterFunc(3*time.Second, func() { close(calm) })
	before := &measured{name: "cached, no flood, new connections"}
	before.latencies, before.failed = measure(from("127.0.0.2", false), calm)

	attack := &tls.Config{InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{tls.X25519}} // cheap for the client
	var flood, rest sync.WaitGroup
	var opened, answered, tooMany atomic.Int64
	stop, next := make(chan struct{}), make(chan int)
	for range 64 {
		flood.Go(func() {
			for i := range next {
				c, err := tls.Dial("tcp", addr, attack)
				if err != nil {
					continue
				}
				opened.Add(1)
				rest.Go(func() {
					defer c.Close()
					_, _ = fmt.Fprintf(c, "GET /pods HTTP/1.1\r\nHost: n1\r\nAuthorization: Bearer bad-%d\r\n\r\n", i)
					text, _ := io.ReadAll(c) // until the server closes the connection
					switch {
					case strings.HasPrefix(string(text), "HTTP/1.1 429"):
						tooMany.Add(1)
					case len(text) > 0:
						answered.Add(1)
					}
				})
			}
		})
	}
	var mu sync.Mutex
	var all []*measured
	for _, m := range []struct {
		name, host string
		keepAlive  bool
	}{
		{"cached, another host, new connections", "127.0.0.2", false},
		{"cached, another host, one connection", "127.0.0.2", true},
		{"cached, the flood's host, new connections", "127.0.0.1", false},
	} {
		rest.Go(func() {
			got := &measured{name: m.name}
			got.latencies, got.failed = measure(from(m.host, m.keepAlive), stop)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, got)
		})
	}
	unknown := &measured{name: "unknown, another host"}
	rest.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(500 * time.Millisecond):
			}
			took, err := ask(from("127.0.0.2", false), fmt.Sprintf("good-%d", i))
			if err != nil {
				unknown.failed++
			}
			unknown.latencies = append(unknown.latencies, took)
		}
	})
	begun := time.Now()
	for i := range connections {
		next <- i
	}
	close(next)
	flood.Wait()
	took := time.Since(begun)
	time.Sleep(5 * time.Second) // more latencies while reviews are pending
	close(stop)
	rest.Wait()
	t.Logf("%d connections opened in %v; 401: %d, 429: %d; %d reviews", opened.Load(), took.Round(time.Millisecond), answered.Load(), tooMany.Load(), reviews.Load())
	for _, m := range append(all, before, unknown) {
		require.NotEmpty(t, m.latencies, m.name)
		slices.Sort(m.latencies)
		at := func(percent int) time.Duration {
			return m.latencies[(len(m.latencies)-1)*percent/100].Round(time.Millisecond / 10)
		}
		t.Logf("%-42s n %d, p50 %v, p99 %v, max %v, failed %d", m.name, len(m.latencies), at(50), at(99), at(100), m.failed)
		if m.name != "cached, the flood's host, new connections" {
			assert.Zero(t, m.failed, m.name)
		}
	}
}
