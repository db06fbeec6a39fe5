package hollow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/kube/hollow"
)

// A group has the processes of a test and their API server.
type group struct {
	t     *testing.T
	api   *apitest.Server
	mu    sync.Mutex
	wrote map[string]write // last write of each node's lease
	twice []string         // nodes that two processes have run at the same time
}

type write struct {
	by string
	at time.Time
}

// A process is one process of a group.
type process struct {
	g       *group
	name    string
	nodes   *hollow.Nodes
	cut     atomic.Bool // its requests fail
	cancel  context.CancelFunc
	stopped chan error
}

// inGroup runs a test with nodes and pods on each: one that runs, and one that is restarted.
func inGroup(t *testing.T, nodes int, test func(g *group)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &group{t: t, api: new(apitest.Server), wrote: map[string]write{}}
		for i := range nodes {
			name := fmt.Sprint("n", i)
			g.api.Put(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"type": "kwok"}}})
			for pod, behavior := range map[string]string{"runs-": "run", "crashes-": "exit=1@30s,crashes=2"} {
				g.api.Put(&v1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: pod + name, Namespace: "default", Annotations: map[string]string{fakenode.Annotation: behavior}},
					Spec:       v1.PodSpec{NodeName: name, Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
				})
			}
		}
		test(g)
		assert.Empty(t, g.twice)
	})
}

// RoundTrip implements http.RoundTripper for one process.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.cut.Load() {
		return nil, errors.New("connection refused")
	}
	if _, node, ok := strings.Cut(r.URL.Path, "/namespaces/kube-node-lease/leases/"); ok && r.Method == http.MethodPut {
		p.g.mu.Lock()
		// Two renewals of one node by different processes are at least one read of leases apart.
		if was := p.g.wrote[node]; was.by != "" && was.by != p.name && time.Since(was.at) == 0 {
			p.g.twice = append(p.g.twice, node)
		}
		p.g.wrote[node] = write{p.name, time.Now()}
		p.g.mu.Unlock()
	}
	return p.g.api.RoundTrip(r)
}

// start starts a process.
func (g *group) start(name string) *process {
	g.t.Helper()
	p := &process{g: g, name: name, stopped: make(chan error, 1)}
	rest := g.api.RESTConfig()
	rest.Transport = p
	var err error
	p.nodes, err = hollow.New(rest, hollow.Config{Shard: hollow.Shard{Group: "test", Namespace: "hollow", Identity: name}})
	require.NoError(g.t, err)
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(g.t.Context())
	go func() { p.stopped <- p.nodes.Run(ctx) }()
	return p
}

// stop ends the process, as SIGTERM does.
func (p *process) stop() {
	p.g.t.Helper()
	p.cancel()
	require.NoError(p.g.t, <-p.stopped)
}

// kill ends the process so that none of its requests reaches the API server any longer.
func (p *process) kill() {
	p.cut.Store(true)
	p.cancel()
	<-p.stopped
}

// shared asserts that each node is run by exactly one of the processes, and that each of these
// runs some.
func (g *group) shared(nodes int, among ...*process) {
	g.t.Helper()
	of := map[string]string{}
	for _, p := range among {
		names := p.nodes.Names()
		assert.NotEmpty(g.t, names, p.name)
		for _, n := range names {
			assert.Empty(g.t, of[n], "%s is run twice", n)
			of[n] = p.name
		}
	}
	assert.Len(g.t, of, nodes)
}

// statuses returns the statuses of all pods as text.
func (g *group) statuses() map[string]string {
	out := map[string]string{}
	for _, o := range g.api.List("pods") {
		s, err := json.Marshal(o.(*v1.Pod).Status)
		require.NoError(g.t, err)
		out[o.(*v1.Pod).Name] = string(s)
	}
	return out
}

// unchanged asserts that the pods have the statuses that they had.
func (g *group) unchanged(before map[string]string) {
	g.t.Helper()
	for name, is := range g.statuses() {
		assert.Equal(g.t, before[name], is, name)
	}
}

// renewals returns the longest time since the lease of a node was renewed.
func (g *group) longest() time.Duration {
	var most time.Duration
	for _, o := range g.api.List("leases") {
		if l := o.(*coordinationv1.Lease); l.Namespace == "kube-node-lease" {
			most = max(most, time.Since(l.Spec.RenewTime.Time))
		}
	}
	return most
}

func TestProcessesShareTheNodes(t *testing.T) {
	inGroup(t, 12, func(g *group) {
		a := g.start("a")
		time.Sleep(2 * time.Minute)
		g.shared(12, a)
		first := a.nodes.Names()
		before := g.statuses()
		for name, s := range before {
			require.Contains(t, s, `"phase":"Running"`, name)
			require.Contains(t, s, map[bool]string{true: `"restartCount":2`, false: `"restartCount":0`}[strings.HasPrefix(name, "crashes")], name)
		}
		b := g.start("b")
		time.Sleep(10 * time.Second)
		g.shared(12, a, b)
		c := g.start("c")
		time.Sleep(10 * time.Second)
		g.shared(12, a, b, c)
		assert.Subset(t, first, a.nodes.Names())
		kept := b.nodes.Names()

		c.stop()
		time.Sleep(4 * time.Second)
		g.shared(12, a, b)
		assert.Subset(t, b.nodes.Names(), kept, "only the nodes of c have changed hands")
		a.stop()
		time.Sleep(4 * time.Second)
		g.shared(12, b)
		g.unchanged(before)
		b.stop()
		assert.Len(t, g.api.List("leases"), 12, "those of nodes remain")
	})
}

func TestTheNodesOfAProcessThatDiesGoOn(t *testing.T) {
	inGroup(t, 12, func(g *group) {
		a, b, c := g.start("a"), g.start("b"), g.start("c")
		time.Sleep(2 * time.Minute)
		g.shared(12, a, b, c)
		before := g.statuses()
		lost := c.nodes.Names()
		c.kill()
		died := time.Now()
		var took time.Duration
		for took == 0 && time.Since(died) < time.Minute {
			time.Sleep(100 * time.Millisecond)
			if len(a.nodes.Names())+len(b.nodes.Names()) == 12 {
				took = time.Since(died)
			}
		}
		t.Logf("%d nodes are run by others %v after their process died", len(lost), took)
		assert.InDelta(t, 11, took.Seconds(), 3, "the duration of a lease, and two reads")
		g.shared(12, a, b)
		time.Sleep(11 * time.Second)
		assert.Less(t, g.longest(), 12*time.Second)
		g.unchanged(before)
		time.Sleep(20 * time.Second)
		assert.Nil(t, g.api.Get("leases", "hollow", "test-c"), "its lease is removed")
	})
}

// A process whose requests fail stops its nodes before others run them, and shares them again.
func TestAProcessThatCannotRenewItsLeaseStopsItsNodes(t *testing.T) {
	inGroup(t, 12, func(g *group) {
		a, b := g.start("a"), g.start("b")
		time.Sleep(2 * time.Minute)
		g.shared(12, a, b)
		before := g.statuses()
		b.cut.Store(true)
		for len(a.nodes.Names()) < 12 {
			time.Sleep(100 * time.Millisecond)
			if len(a.nodes.Names()) == 12 {
				assert.Empty(t, b.nodes.Names(), "it has stopped before")
			}
		}
		time.Sleep(time.Minute)
		b.cut.Store(false)
		time.Sleep(30 * time.Second)
		g.shared(12, a, b)
		g.unchanged(before)
	})
}

func TestASecondProcessOfTheSameIdentityIsAnError(t *testing.T) {
	inGroup(t, 1, func(g *group) {
		a, other := g.start("a"), g.start("a")
		var err error
		select {
		case err = <-a.stopped:
			other.stop()
		case err = <-other.stopped:
			a.stop()
		}
		assert.ErrorContains(t, err, "Config.Shard.Identity must be unique")
	})
}

func TestErrorsNameTheInvalidField(t *testing.T) {
	rest := new(apitest.Server).RESTConfig()
	for want, cfg := range map[string]hollow.Config{
		"Config.Select.Labels":       {Select: hollow.Selector{Labels: "a=("}},
		"Config.Select.Annotations":  {Select: hollow.Selector{Annotations: "=="}},
		"Config.Shard.Namespace":     {Shard: hollow.Shard{Group: "g", Identity: "i"}},
		"Config.Shard.Identity":      {Shard: hollow.Shard{Group: "g", Namespace: "n"}},
		"name of a lease":            {Shard: hollow.Shard{Group: "g", Namespace: "n", Identity: "A B"}},
		"Config.Shard.Duration":      {Shard: hollow.Shard{Group: "g", Namespace: "n", Identity: "i", Duration: time.Second}},
		"Config.Port.IP":             {Port: hollow.Port{IP: netip.IPv4Unspecified()}},
		"Config.Port.Authenticator":  {Port: hollow.Port{IP: netip.MustParseAddr("10.0.0.1")}},
		"Config.Port.Authorizer":     {Port: hollow.Port{IP: netip.MustParseAddr("10.0.0.1"), Authenticator: auth.Anonymous{}}},
		"Config.Nodes.Nodes":         {Shard: hollow.Shard{Group: "g", Namespace: "n", Identity: "i"}, Nodes: fakenode.Config{Nodes: fakenode.Many(2, fakenode.Node{})}},
		"fakenode: Config.Heartbeat": {Nodes: fakenode.Config{Heartbeat: fakenode.Heartbeat{StatusPeriod: -1}}},
	} {
		_, err := hollow.New(rest, cfg)
		assert.ErrorContains(t, err, want)
	}
}
