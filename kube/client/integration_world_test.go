package client_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// A cluster is a real control plane, on which the test can use any identity.
type cluster struct {
	*lab.ControlPlane
	admin kubernetes.Interface
}

// A member is an agent that is a node of the cluster, with a connection that can be
// cut.
type member struct {
	*agent
	t       *testing.T
	cluster *cluster
	node    string // and its namespace
	cable   *cable
	tally   *tally
	conn    *client.Connection
}

// newCluster starts one. Pods have no cache: a watch that is too old for the store is
// too old for the server.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	plane := lab.NewControlPlane(t, lab.ControlPlaneConfig{
		NodeMonitorGrace: time.Hour, APIServer: []string{"--watch-cache-sizes=pods#0", "--etcd-compaction-interval=0", "--storage-media-type=application/json", "--request-timeout=30m"},
	})
	admin, err := client.Connect(client.Config{Kubeconfig: plane.Kubeconfig, QPS: -1})
	require.NoError(t, err)
	return &cluster{plane, admin.API}
}

// newMember creates a node, and a namespace of the same name, and runs an agent.
func (c *cluster) newMember(t *testing.T, name string) *member {
	t.Helper()
	m, owner := c.connect(t, name)
	m.agent = &agent{runtime: &runtimetest.Runtime{Backoff: 100 * time.Millisecond}}
	for _, run := range m.parts(t, m.conn.API, name, owner) {
		stopsWithin(t, patience, run)
	}
	return m
}

// connect is newMember for tests without an agent.
func (c *cluster) connect(t *testing.T, name string) (*member, metav1.OwnerReference) {
	t.Helper()
	m := &member{t: t, cluster: c, node: name, cable: newCable(t, c.URL), tally: new(tally)}
	node, err := c.admin.CoreV1().Nodes().Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.namespace(t, name)
	cfg := client.Config{Kubeconfig: c.NodeKubeconfig(name), Wrap: m.tally.wrap}
	base, err := client.RESTConfig(cfg)
	require.NoError(t, err)
	base.Host = m.cable.url
	m.conn, err = client.ConnectTo(base, cfg)
	require.NoError(t, err)
	return m, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}
}

// namespace creates a namespace in which pods can be created.
func (c *cluster) namespace(t *testing.T, name string) {
	t.Helper()
	_, err := c.admin.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	soon(t, "the namespace has its service account", func() bool {
		_, err := c.admin.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
}

// make creates a pod for the node.
func (m *member) make(name string, containers ...v1.Container) *v1.Pod {
	m.t.Helper()
	if containers == nil {
		containers = []v1.Container{{Name: "main", Image: "web:1"}}
	}
	pod, err := m.cluster.admin.CoreV1().Pods(m.node).Create(m.t.Context(), &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.PodSpec{NodeName: m.node, AutomountServiceAccountToken: new(false), Containers: containers},
	}, metav1.CreateOptions{})
	require.NoError(m.t, err)
	return pod
}

// get returns the API server's pod, nil if there is none.
func (m *member) get(name string) *v1.Pod {
	pod, err := m.cluster.admin.CoreV1().Pods(m.node).Get(m.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return pod
}

// ready waits until the API server has the pods as ready.
func (m *member) ready(names ...string) {
	m.t.Helper()
	for _, name := range names {
		soon(m.t, name+" is ready", func() bool { pod := m.get(name); return pod != nil && status.IsReady(&pod.Status) })
	}
}

// store is a call of the store's own API.
func (c *cluster) store(t *testing.T, what string, ask map[string]any) map[string]any {
	t.Helper()
	body, err := json.Marshal(ask)
	require.NoError(t, err)
	res, err := http.Post(c.Etcd+"/v3/kv/"+what, "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", what, data)
	answer := map[string]any{}
	require.NoError(t, json.Unmarshal(data, &answer))
	return answer
}

// compact has the store forget all history.
func (c *cluster) compact(t *testing.T) {
	t.Helper()
	now := c.store(t, "range", map[string]any{"key": []byte("nothing")})
	header, _ := now["header"].(map[string]any)
	c.store(t, "compaction", map[string]any{"revision": header["revision"], "physical": true})
}

// bounded fails if there were more requests than perSecond times the elapsed seconds,
// plus besides.
func (m *member) bounded(about string, since time.Time, perSecond float64, besides int) {
	m.t.Helper()
	n, took := m.tally.count(everything), time.Since(since)
	m.t.Logf("%s: %d requests in %v", about, n, took.Round(time.Millisecond))
	if float64(n) > perSecond*took.Seconds()+float64(besides) {
		m.t.Errorf("%s: %d requests in %v, more than %v a second: %v", about, n, took, perSecond, m.tally.asked)
	}
}

// edit changes an object in the store without the API server, as a server with another clock would
// have written it.
func (c *cluster) edit(t *testing.T, key string, change func(object map[string]any)) {
	t.Helper()
	found := c.store(t, "range", map[string]any{"key": []byte("/registry/" + key)})
	kvs, _ := found["kvs"].([]any)
	require.Len(t, kvs, 1, key)
	kv, _ := kvs[0].(map[string]any)
	value, _ := kv["value"].(string)
	data, err := base64.StdEncoding.DecodeString(value)
	require.NoError(t, err)
	object := map[string]any{}
	require.NoError(t, json.Unmarshal(data, &object))
	change(object)
	data, err = json.Marshal(object)
	require.NoError(t, err)
	c.store(t, "put", map[string]any{"key": []byte("/registry/" + key), "value": data})
}

// occupy makes the server wait for the end of a request of the node's, outside the
// cable, until the test ends. It returns when no other request of the node is accepted
// because of it.
func (m *member) occupy(t *testing.T) {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(m.conn.Config)
	require.NoError(t, err)
	to := strings.TrimPrefix(m.cluster.URL, "https://")
	asks := &http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}}
	soon(t, "the node is rejected", func() bool {
		conn, err := tls.Dial("tcp", to, tlsConfig)
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "POST /api/v1/namespaces/%s/events HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n", m.node, to)
		require.NoError(t, err)
		for range 20 {
			res, err := asks.Get(m.cluster.URL + "/api/v1/nodes/" + m.node)
			require.NoError(t, err)
			res.Body.Close()
			if res.StatusCode == http.StatusTooManyRequests {
				t.Cleanup(func() { conn.Close() })
				return true
			}
			time.Sleep(50 * time.Millisecond)
		}
		conn.Close()
		return false
	})
}

// A cable carries connections to the API server, when it is not cut.
type cable struct {
	url, to string

	mu    sync.Mutex // guards the fields below
	cut   bool
	conns map[net.Conn]bool
}

func newCable(t *testing.T, target string) *cable {
	t.Helper()
	to, err := url.Parse(target)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{url: "https://" + l.Addr().String(), to: to.Host, conns: map[net.Conn]bool{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { c.carry(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		c.unplug()
		wg.Wait()
	})
	return c
}

func (c *cable) carry(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer to.Close()
	if !c.note(from, to) {
		return
	}
	go func() {
		io.Copy(to, from)
		to.Close()
	}()
	io.Copy(from, to)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, from)
	delete(c.conns, to)
}

// note reports whether the connections are permitted.
func (c *cable) note(conns ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		c.conns[conn] = true
	}
	return !c.cut
}

// unplug closes all connections, existing and new.
func (c *cable) unplug() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for conn := range c.conns {
		conn.Close()
	}
}

func (c *cable) plug() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = false
}

// A tally records an agent's requests on the wire: retries by the client count
// separately.
type tally struct {
	mu    sync.Mutex // guards the fields below
	asked []asking
}

// An asking is one request.
type asking struct {
	verb string // list, watch, get, patch, …
	path string
	all  bool // a list, or a watch that begins with everything
	code int  // 0: no answer
	at   time.Time
}

func (a asking) String() string {
	return fmt.Sprintf("%s %s %s: %d", a.at.Format("05.000"), a.verb, a.path, a.code)
}

func (y *tally) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		a := asking{verb: strings.ToLower(r.Method), path: r.URL.Path, at: time.Now()}
		query := r.URL.Query()
		switch {
		case query.Get("watch") != "":
			a.verb, a.all = "watch", query.Get("sendInitialEvents") == "true"
		case a.verb == "get" && strings.HasSuffix(a.path, "/pods"):
			a.verb, a.all = "list", true
		}
		res, err := next.RoundTrip(r)
		if err == nil {
			a.code = res.StatusCode
		}
		y.mu.Lock()
		defer y.mu.Unlock()
		y.asked = append(y.asked, a)
		return res, err
	})
}

// count returns the number of requests for which such returns true.
func (y *tally) count(such func(asking) bool) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	n := 0
	for _, a := range y.asked {
		if such(a) {
			n++
		}
	}
	return n
}

// forget clears the recorded requests.
func (y *tally) forget() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.asked = nil
}

func everything(asking) bool { return true }
