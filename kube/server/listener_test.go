package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/server"
)

// pipes is a network in memory, which waits in virtual time.
type pipes struct {
	conns chan net.Conn
	end   chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), end: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.end) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial returns the other end of a new connection.
func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
}

// A caller reads everything that arrives on a connection, so that the writer does not
// block.
type caller struct {
	net.Conn
	mu   sync.Mutex
	text strings.Builder
	gone bool
}

func (p *pipes) call() *caller {
	c := &caller{Conn: p.dial()}
	go func() {
		r := bufio.NewReader(c)
		for {
			line, err := r.ReadString('\n')
			c.mu.Lock()
			c.text.WriteString(line)
			c.gone = err != nil
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return c
}

// received returns the text that arrived, and whether the connection is still open.
func (c *caller) received() (text string, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String(), !c.gone
}

// onPipes runs a listener on pipes, in a bubble, until the test ends.
func onPipes(t *testing.T, cfg server.ListenerConfig, test func(p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		cfg.Listener = p
		l, err := server.NewListener(cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		test(p)
		cancel()
		require.NoError(t, <-done)
		require.EqualError(t, l.Run(ctx), "server: Listener.Run was called before")
	})
}

const get = "GET /pods HTTP/1.1\r\nHost: n1\r\n"

// ok serves everybody.
func ok(t *testing.T) http.Handler {
	return newServer(t, nil).ReadOnly()
}

// Slowloris: a client that sends a request byte by byte has ten seconds.
func TestSlowClientsAreDisconnected(t *testing.T) {
	onPipes(t, server.ListenerConfig{Handler: ok(t)}, func(p *pipes) {
		silent, slow, good := p.call(), p.call(), p.call()
		begun := time.Now()
		for _, b := range []byte(get) {
			if _, err := slow.Write([]byte{b}); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		assert.InDelta(t, 11, time.Since(begun).Seconds(), 1.5)
		time.Sleep(time.Second)
		_, there := silent.received()
		assert.False(t, there)
		text, there := slow.received()
		assert.False(t, there)
		assert.NotContains(t, text, "200 OK")
		_, there = good.received()
		assert.False(t, there, "a silent client is disconnected too")
		fast := p.call()
		fmt.Fprint(fast, get+"\r\n")
		synctest.Wait()
		text, _ = fast.received()
		assert.Contains(t, text, "200 OK")
	})
}

// sv-1: a connection without requests is closed after 90 s.
func TestAnIdleConnectionStays90Seconds(t *testing.T) {
	onPipes(t, server.ListenerConfig{Handler: ok(t)}, func(p *pipes) {
		c := p.call()
		fmt.Fprint(c, get+"\r\n")
		time.Sleep(89 * time.Second)
		_, there := c.received()
		assert.True(t, there)
		time.Sleep(2 * time.Second)
		_, there = c.received()
		assert.False(t, there)
	})
}

// sv-1: a request lasts four hours at most.
func TestARequestLastsFourHoursAtMost(t *testing.T) {
	log := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // as for kubectl logs -f
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, "line\n"); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			time.Sleep(7 * time.Minute)
		}
	})
	onPipes(t, server.ListenerConfig{Handler: log}, func(p *pipes) {
		c := p.call()
		fmt.Fprint(c, get+"\r\n")
		time.Sleep(4*time.Hour - time.Minute)
		_, there := c.received()
		assert.True(t, there)
		time.Sleep(12 * time.Minute)
		text, there := c.received()
		assert.False(t, there)
		assert.Equal(t, 35, strings.Count(text, "line\n"))
	})
}

// sv-1: headers of more than 1 MiB.
func TestHugeHeadersAreRefused(t *testing.T) {
	onPipes(t, server.ListenerConfig{Handler: ok(t)}, func(p *pipes) {
		c := p.call()
		fmt.Fprint(c, get)
		sent := 0
		for line := "X: " + strings.Repeat("y", 4093) + "\r\n"; sent < 64<<20; sent += len(line) {
			if _, err := io.WriteString(c, line); err != nil {
				break
			}
		}
		assert.InDelta(t, 1<<20, sent, 64<<10)
		time.Sleep(time.Second)
		text, there := c.received()
		assert.Contains(t, text, "431 Request Header Fields Too Large")
		assert.False(t, there)
	})
}

// 2,000 connections without a request: the newest stay, up to the limit; all others
// are served meanwhile.
func TestAFloodOfUnauthenticatedClientsDisplacesNoOthers(t *testing.T) {
	s := newServer(t, func(c *server.Config) {
		c.Authenticator, c.Authorizer = named{}, may{"friend": {"get nodes/pods"}}
	})
	onPipes(t, server.ListenerConfig{Handler: s, Limits: server.Limits{MaxUnauthenticated: 100}}, func(p *pipes) {
		authorized := p.call()
		fmt.Fprint(authorized, get+"User: friend\r\n\r\n")
		synctest.Wait()
		refused := p.call()
		fmt.Fprint(refused, get+"User: nobody\r\n\r\n")
		synctest.Wait()
		var flood []*caller
		for i := range 2_000 {
			c := p.call()
			if i%2 == 0 {
				fmt.Fprint(c, get) // half a request
			}
			flood = append(flood, c)
			if i%400 == 399 {
				other := p.call()
				fmt.Fprint(other, get+"User: friend\r\nConnection: close\r\n\r\n")
				synctest.Wait()
				text, _ := other.received()
				require.Contains(t, text, "200 OK", "after %d", i)
			}
		}
		synctest.Wait()
		open := 0
		for i, c := range flood {
			if _, there := c.received(); there {
				open++
				assert.Greater(t, i, 1800, "it is the last that stay")
			}
		}
		assert.LessOrEqual(t, open, 100)
		assert.Greater(t, open, 90)
		_, there := refused.received()
		assert.False(t, there, "a rejected client counts as unauthenticated")
		fmt.Fprint(authorized, get+"User: friend\r\n\r\n")
		synctest.Wait()
		text, there := authorized.received()
		assert.True(t, there, "an authenticated client stays connected")
		assert.Equal(t, 2, strings.Count(text, "200 OK"))
	})
}

// On a port without authentication, clients that don't read their answers make
// room for others, and have a minute.
func TestSlowReadersOfAnOpenPortMakeRoom(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 64 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	onPipes(t, server.ListenerConfig{Handler: page, Unauthenticated: true, Limits: server.Limits{MaxUnauthenticated: 100}}, func(p *pipes) {
		var slow []net.Conn
		there := func(c net.Conn) bool {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := c.Read(make([]byte, 1))
			return err == nil
		}
		for range 500 {
			c := p.dial()
			fmt.Fprint(c, get+"\r\n")
			synctest.Wait()
			slow = append(slow, c)
		}
		open := 0
		for _, c := range slow {
			if there(c) {
				open++
			}
		}
		assert.Equal(t, 100, open)
		fast := p.call()
		for i := range 3 { // on one connection, as a scraper does
			fmt.Fprint(fast, get+"\r\n")
			synctest.Wait()
			text, _ := fast.received()
			require.Equal(t, i+1, strings.Count(text, "200 OK"))
		}
		time.Sleep(61 * time.Second)
		for _, c := range slow {
			assert.False(t, there(c), "it has had its minute")
		}
	})
}

// Bytes that form no request are bounded, for each client.
func TestUnauthenticatedRequestsAreBounded(t *testing.T) {
	onPipes(t, server.ListenerConfig{Handler: ok(t), Limits: server.Limits{MaxPendingBytes: 1 << 20}}, func(p *pipes) {
		var all []*caller
		for range 20 {
			c := p.call()
			fmt.Fprint(c, get)
			for range 20 {
				if _, err := io.WriteString(c, "X: "+strings.Repeat("y", 10<<10)+"\r\n"); err != nil {
					break
				}
			}
			all = append(all, c)
		}
		synctest.Wait()
		open := 0
		for _, c := range all {
			if _, there := c.received(); there {
				open++
			}
		}
		assert.InDelta(t, 5, open, 2, "of 200 KiB each")
		small := p.call()
		fmt.Fprint(small, get+"\r\n")
		synctest.Wait()
		text, _ := small.received()
		assert.Contains(t, text, "200 OK")
	})
}

// slowAuth authenticates the user "slow" only after the request ends, as when the API
// server does not respond.
type slowAuth struct{ named }

func (a slowAuth) Authenticate(r *http.Request) (*auth.User, error) {
	if r.Header.Get("User") == "slow" {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return a.named.Authenticate(r)
}

// A connection counts as unauthenticated until its request is authorized, however long
// that takes.
func TestConnectionsWithPendingAuthenticationMakeRoom(t *testing.T) {
	s := newServer(t, func(c *server.Config) {
		c.Authenticator, c.Authorizer = slowAuth{}, may{"friend": {"get nodes/pods"}}
	})
	onPipes(t, server.ListenerConfig{Handler: s, Limits: server.Limits{MaxConnections: 50, MaxUnauthenticated: 20}}, func(p *pipes) {
		var flood []*caller
		for range 200 {
			c := p.call()
			fmt.Fprint(c, get+"User: slow\r\n\r\n")
			flood = append(flood, c)
		}
		synctest.Wait()
		open := 0
		for _, c := range flood {
			if _, there := c.received(); there {
				open++
			}
		}
		assert.Equal(t, 20, open)
		authorized := p.call()
		fmt.Fprint(authorized, get+"User: friend\r\n\r\n")
		synctest.Wait()
		text, _ := authorized.received()
		assert.Contains(t, text, "200 OK")
	})
}

// An authorized request is not closed to make room, but the number of these is bounded
// as well.
func TestConnectionsAreBoundedInAll(t *testing.T) {
	slow := newServer(t, func(c *server.Config) {
		c.Node.Stats = usage(func(ctx context.Context, _ bool) (*statsapi.Summary, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return &statsapi.Summary{}, nil
		})
	})
	onPipes(t, server.ListenerConfig{Handler: slow, Limits: server.Limits{MaxConnections: 10}}, func(p *pipes) {
		var busy []*caller
		for range 10 {
			c := p.call()
			fmt.Fprint(c, "GET /stats/summary HTTP/1.1\r\nHost: n1\r\n\r\n")
			busy = append(busy, c)
		}
		synctest.Wait()
		more := p.call()
		synctest.Wait()
		_, there := more.received()
		assert.False(t, there, "there is no room")
		for _, c := range busy {
			_, there := c.received()
			assert.True(t, there)
		}
		time.Sleep(2 * time.Minute)
		for _, c := range busy {
			text, _ := c.received()
			assert.Contains(t, text, "200 OK")
		}
	})
}

// When the agent stops, hijacked streams end as well, and Run waits for their
// handlers.
func TestRunEndsStreamsThatWereTakenOver(t *testing.T) {
	ended := make(chan struct{})
	taken := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer close(ended)
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
		_, _ = io.Copy(io.Discard, rw) // until it is closed
	})
	var c *caller
	onPipes(t, server.ListenerConfig{Handler: taken}, func(p *pipes) {
		c = p.call()
		fmt.Fprint(c, get+"\r\n")
		time.Sleep(24 * time.Hour) // no limit of a request holds for it
		text, there := c.received()
		assert.Contains(t, text, "101")
		assert.True(t, there)
	})
	select {
	case <-ended:
	default:
		assert.Fail(t, "the handler still runs")
	}
}

func TestAListenerThatCannotListenReturnsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		require.NoError(t, p.Close())
		l, err := server.NewListener(server.ListenerConfig{Listener: p, Handler: ok(t)})
		require.NoError(t, err)
		assert.ErrorContains(t, l.Run(t.Context()), "server: listen on")
	})
	_, err := server.NewListener(server.ListenerConfig{Handler: ok(t)})
	assert.ErrorContains(t, err, "ListenerConfig.Listener is nil")
	_, err = server.NewListener(server.ListenerConfig{Listener: newPipes()})
	assert.ErrorContains(t, err, "ListenerConfig.Handler is nil")
	_, err = server.NewListener(server.ListenerConfig{Listener: newPipes(), Handler: ok(t), Limits: server.Limits{MaxUnauthenticated: -1}})
	assert.ErrorContains(t, err, "is negative")
}
