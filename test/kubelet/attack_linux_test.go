package kubelet

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// An attacked agent serves the kubelet's API to clients with a certificate of its CA.
type attacked struct {
	*agent
	api, health string
	authorized  *http.Client
}

func startAttacked(t *testing.T) *attacked {
	t.Helper()
	a := &attacked{agent: newAgent(t, "process")}
	ca, authorized := issue(t)
	a.authorized = overTLS(authorized)
	config := filepath.Join(a.dir, "kubelet.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, "ca.crt"), ca, 0o600))
	require.NoError(t, os.WriteFile(config, []byte(strings.ReplaceAll(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: -1
healthzPort: -1
authentication: {x509: {clientCAFile: DIR/ca.crt}}
authorization: {mode: AlwaysAllow}
cgroupsPerQOS: false
enforceNodeAllocatable: []
evictionHard: {memory.available: 1Mi}
failSwapOn: false
`, "DIR", a.dir)), 0o600))
	a.flags = []string{"--config=" + config}
	a.start()
	a.api = a.logged(`kubelet API at https://(\S+)`)
	a.health = a.logged(`http://(\S+)/healthz`)
	return a
}

// logged returns the first group of the last match of pattern in the agent's output.
func (a *attacked) logged(pattern string) string {
	a.t.Helper()
	var found []string
	a.eventually("the agent prints its addresses", func() bool {
		all := regexp.MustCompile(pattern).FindAllStringSubmatch(a.out.String(), -1)
		if len(all) > 0 {
			found = all[len(all)-1]
		}
		return len(all) > 0
	})
	return found[1]
}

// ask returns the status code and the body of the response.
func (a *attacked) ask(client *http.Client, path string) (int, string) {
	a.t.Helper()
	answer, err := client.Get("https://" + a.api + path)
	require.NoError(a.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(a.t, err)
	return answer.StatusCode, string(body)
}

// memory returns the anonymous memory of the agent, in KiB.
func (a *attacked) memory() int {
	a.t.Helper()
	bytes := labenv.AnonymousMemory(a.cmd.Process.Pid)
	require.Positive(a.t, bytes)
	return int(bytes >> 10)
}

// Unauthorized clients are refused, and no path leads out of the roots.
func TestUnauthorizedClientsAreRejected(t *testing.T) {
	t.Parallel()
	a := startAttacked(t)
	_, stranger := issue(t)
	for what, client := range map[string]*http.Client{"anonymous": overTLS(), "of another CA": overTLS(stranger)} {
		for _, path := range []string{"/pods", "/exec/default/web-node/main?command=id&output=1", "/containerLogs/default/a/b", "/logs/", "/metrics", "/configz", "/healthz"} {
			code, body := a.ask(client, path)
			assert.Equal(t, 401, code, "%s: %s", what, path)
			assert.Equal(t, "Unauthorized", body)
		}
	}
	a.write("web.yaml", manifest("web", containers(container("main", "trap 'exit 0' TERM; sleep 3600 & wait"))))
	a.eventually("the pod runs", func() bool { return a.pods()["web"].Status.Phase == v1.PodRunning })
	code, body := a.ask(a.authorized, "/pods")
	assert.Equal(t, 200, code)
	assert.Contains(t, body, `"name":"web-node"`)
	code, body = a.ask(a.authorized, "/healthz/syncloop")
	assert.Equal(t, "200 ok", fmt.Sprint(code, " ", body))

	require.NoError(t, os.WriteFile(filepath.Join(a.dir, "secret"), []byte("the secret"), 0o600))
	up := strings.Repeat("../", 12)
	for _, path := range []string{
		"/logs/" + up + "etc/passwd", "/logs/" + strings.ReplaceAll(up, "/", "%2f") + "etc%2fpasswd", "/logs/%2e%2e/%2e%2e/etc/passwd", "/logs//etc/passwd", "/logs/..;/etc/passwd",
		"/logs/..%5c..%5cetc%5cpasswd", "/logs/.%00./etc/passwd",
		"/containerLogs/" + up + "etc/passwd", "/containerLogs/default/web-node/..%2f..%2f..%2f..%2fsecret", "/containerLogs/..%2f..%2f..%2fsecret/web-node/main",
		"/containerLogs/default/..%2f..%2fsecret/main", "/containerLogs/default/web-node/main%00",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+a.api, nil)
		require.NoError(t, err)
		request.URL.Opaque = "//" + a.api + path // unescaped
		answer, err := a.authorized.Do(request)
		require.NoError(t, err, path)
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		require.NoError(t, err)
		assert.Contains(t, []int{400, 403, 404}, answer.StatusCode, path)
		assert.NotContains(t, string(text), "root:", path)
		assert.NotContains(t, string(text), "the secret", path)
	}
}

// 10,000 half-open connections, slow ones and ones with headers without end: others are
// served, pods come and go as if nothing were, and memory is bounded.
func TestPodsAreSyncedUnderAttack(t *testing.T) {
	t.Parallel()
	a := startAttacked(t)
	// alive measures the time until a new pod runs.
	alive := func(name string) time.Duration {
		begun := time.Now()
		a.write(name+".yaml", manifest(name, containers(container("main", "trap 'exit 0' TERM; sleep 3600 & wait"))))
		a.eventually(name+" runs", func() bool { return a.pods()[name].Status.Phase == v1.PodRunning })
		return time.Since(begun)
	}
	calm := alive("calm")
	before := a.memory()

	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	n := int(min(10_000, limit.Cur/4*3))
	var mu sync.Mutex // guards the field below
	var flood []net.Conn
	var wg sync.WaitGroup
	end := make(chan struct{})
	defer func() {
		close(end)
		for _, c := range flood {
			_ = c.Close()
		}
		wg.Wait()
	}()
	dial := func() net.Conn {
		c, err := net.DialTimeout("tcp", a.api, patience)
		require.NoError(t, err)
		mu.Lock()
		flood = append(flood, c)
		mu.Unlock()
		return c
	}
	for range 20 { // endless headers
		c := tls.Client(dial(), &tls.Config{InsecureSkipVerify: true})
		wg.Go(func() {
			line := "X: " + strings.Repeat("y", 8<<10) + "\r\n"
			for _, err := io.WriteString(c, "GET /pods HTTP/1.1\r\nHost: x\r\n"); err == nil; _, err = io.WriteString(c, line) {
			}
		})
	}
	for range 20 { // byte by byte
		c := tls.Client(dial(), &tls.Config{InsecureSkipVerify: true})
		wg.Go(func() {
			for _, b := range []byte("GET /pods HTTP/1.1\r\nHost: x\r\nUser-Agent: " + strings.Repeat("slow", 1000)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				select {
				case <-end:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	for i := range n - 40 {
		c := dial()
		if i%2 == 0 {
			_, _ = c.Write([]byte{22, 3, 1, 2, 0, 1}) // the beginning of a handshake
		}
		if i%(n/5) == 0 {
			code, _ := a.ask(a.authorized, "/pods")
			assert.Equal(t, 200, code, "after %d", i)
		}
	}
	attackedBy := alive("attacked")
	after := a.memory()
	code, _ := a.ask(a.authorized, "/healthz/syncloop")
	assert.Equal(t, 200, code)
	answer, err := http.Get("http://" + a.health + "/healthz")
	require.NoError(t, err)
	_ = answer.Body.Close()
	assert.Equal(t, 200, answer.StatusCode)
	t.Logf("a pod runs after %v, with %d connections after %v; the agent takes %d KiB, and %d KiB", calm.Round(time.Millisecond), n, attackedBy.Round(time.Millisecond), before, after)
	assert.Less(t, after-before, floodMemory, "KiB")
}
