package podsapi_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/kubeparts/kubeparts/agent/podsapi"
	"github.com/kubeparts/kubeparts/internal/seedrun"
)

// A node is the pods and computed statuses of a node.
type node struct {
	mu       sync.Mutex
	pods     map[types.UID]*v1.Pod
	statuses map[types.UID]v1.PodStatus
	synced   bool
}

func newNode() *node {
	return &node{pods: map[types.UID]*v1.Pod{}, statuses: map[types.UID]v1.PodStatus{}, synced: true}
}

func (n *node) put(uid string, phase v1.PodPhase) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pod := &v1.Pod{}
	pod.Namespace, pod.Name, pod.UID = "ns", "pod-"+uid, types.UID(uid)
	n.pods[pod.UID] = pod
	if phase != "" {
		n.statuses[pod.UID] = v1.PodStatus{Phase: phase}
	}
}

func (n *node) remove(uid string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, types.UID(uid))
	delete(n.statuses, types.UID(uid))
}

func (n *node) Desired() (all []*v1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, pod := range n.pods {
		all = append(all, pod)
	}
	return all
}

func (n *node) Pod(uid types.UID) (pod, mirror *v1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pods[uid], nil
}

func (n *node) Status(uid types.UID) (v1.PodStatus, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, ok := n.statuses[uid]
	return s, ok
}

func (n *node) Synced() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.synced
}

// serve serves the pods of n until the test ends.
func serve(t *testing.T, n *node, cfg podsapi.Config) (*podsapi.Server, api.PodsClient) {
	t.Helper()
	cfg.Socket = filepath.Join(t.TempDir(), "sub", "s")
	cfg.Pods = n
	s, err := podsapi.New(cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() { stop(); assert.NoError(t, <-ended) })
	conn, err := grpc.NewClient("unix:"+cfg.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return s, api.NewPodsClient(conn)
}

func decode(t *testing.T, encoded []byte) *v1.Pod {
	t.Helper()
	pod := new(v1.Pod)
	require.NoError(t, pod.Unmarshal(encoded))
	return pod
}

// receive returns the next event as text.
func receive(t *testing.T, from grpc.ServerStreamingClient[api.WatchPodsEvent]) string {
	t.Helper()
	e, err := from.Recv()
	require.NoError(t, err)
	if e.Pod == nil {
		return e.Type.String()
	}
	pod := decode(t, e.Pod)
	return strings.TrimSpace(fmt.Sprintf("%s %s/%s %s %s", e.Type, pod.Namespace, pod.Name, pod.UID, pod.Status.Phase))
}

func TestPodsAreListed(t *testing.T) {
	n := newNode()
	n.put("2", v1.PodRunning)
	n.put("1", "")
	n.pods["1"].Status = v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}, {Type: v1.PodScheduled, Status: v1.ConditionTrue}}}
	calls := make(chan podsapi.CallInfo, 10)
	_, client := serve(t, n, podsapi.Config{Called: func(i podsapi.CallInfo) { calls <- i }})

	list, err := client.ListPods(t.Context(), &api.ListPodsRequest{})
	require.NoError(t, err)
	require.Len(t, list.Pods, 2)
	first, second := decode(t, list.Pods[0]), decode(t, list.Pods[1])
	assert.Equal(t, []types.UID{"1", "2"}, []types.UID{first.UID, second.UID}, "by UID")
	assert.Equal(t, v1.PodRunning, second.Status.Phase)
	assert.Equal(t, v1.PodPending, first.Status.Phase)
	assert.Equal(t, v1.ConditionFalse, first.Status.Conditions[0].Status, "not ready until its status is computed")
	assert.Equal(t, "ContainersNotReady", first.Status.Conditions[0].Reason)
	assert.Equal(t, v1.ConditionTrue, first.Status.Conditions[1].Status)
	assert.Equal(t, v1.ConditionTrue, n.pods["1"].Status.Conditions[0].Status, "the object is not modified")

	get, err := client.GetPod(t.Context(), &api.GetPodRequest{PodUID: "2"})
	require.NoError(t, err)
	assert.Equal(t, list.Pods[1], get.Pod)
	_, err = client.GetPod(t.Context(), &api.GetPodRequest{PodUID: "x\n"})
	assert.Equal(t, codes.NotFound, status.Code(err))
	assert.Equal(t, `pod with UID "x\n" not found`, status.Convert(err).Message())

	assert.Equal(t, podsapi.CallInfo{Method: "/v1alpha1.Pods/ListPods"}, <-calls)
	assert.Equal(t, podsapi.CallInfo{Method: "/v1alpha1.Pods/GetPod"}, <-calls)
	assert.Equal(t, codes.NotFound, status.Code((<-calls).Err))
}

func TestCallsFailUntilTheSourcesHaveSynced(t *testing.T) {
	n := newNode()
	n.synced = false
	_, client := serve(t, n, podsapi.Config{})
	_, err := client.ListPods(t.Context(), &api.ListPodsRequest{})
	assert.Equal(t, codes.FailedPrecondition, status.Code(err))
	watch, err := client.WatchPods(t.Context(), &api.WatchPodsRequest{})
	require.NoError(t, err)
	_, err = watch.Recv()
	assert.Equal(t, codes.FailedPrecondition, status.Code(err))
}

func TestCallsAboveTheLimitsAreRejected(t *testing.T) {
	_, client := serve(t, newNode(), podsapi.Config{QPS: 0.001, Burst: 4, MaxWatches: 2})
	var rejected error
	for i := range 3 {
		watch, err := client.WatchPods(t.Context(), &api.WatchPodsRequest{})
		require.NoError(t, err)
		if i < 2 {
			assert.Equal(t, "INITIAL_SYNC_COMPLETE", receive(t, watch))
			continue
		}
		_, rejected = watch.Recv()
	}
	assert.Equal(t, "2 watches are in progress, which is the limit", status.Convert(rejected).Message())
	_, err := client.ListPods(t.Context(), &api.ListPodsRequest{})
	require.NoError(t, err)
	_, err = client.ListPods(t.Context(), &api.ListPodsRequest{})
	assert.Equal(t, codes.ResourceExhausted, status.Code(err))
	assert.Equal(t, "rejected by rate limit", status.Convert(err).Message())
	watch, err := client.WatchPods(t.Context(), &api.WatchPodsRequest{})
	require.NoError(t, err)
	_, err = watch.Recv()
	assert.Equal(t, "rejected by rate limit", status.Convert(err).Message())
}

func TestAWatchSendsAllPodsAndThenChanges(t *testing.T) {
	n := newNode()
	n.put("2", v1.PodRunning)
	n.put("1", v1.PodPending)
	s, client := serve(t, n, podsapi.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	watch, err := client.WatchPods(ctx, &api.WatchPodsRequest{})
	require.NoError(t, err)
	for _, want := range []string{"ADDED ns/pod-1 1 Pending", "ADDED ns/pod-2 2 Running", "INITIAL_SYNC_COMPLETE"} {
		assert.Equal(t, want, receive(t, watch))
	}
	step := func(want string, uid string, change func()) {
		t.Helper()
		change()
		s.PodChanged(types.UID(uid))
		assert.Equal(t, want, receive(t, watch))
	}
	step("MODIFIED ns/pod-1 1 Running", "1", func() { n.put("1", v1.PodRunning) })
	s.PodChanged("1")       // it has not
	s.PodChanged("unknown") // neither the client nor the node has it
	step("ADDED ns/pod-3 3 Pending", "3", func() { n.put("3", v1.PodPending) })
	step("DELETED ns/pod-1 1", "1", func() { n.remove("1") })
	step("ADDED ns/pod-1 1 Pending", "1", func() { n.put("1", v1.PodPending) })
	cancel()
	_, err = watch.Recv()
	assert.Equal(t, codes.Canceled, status.Code(err))
}

// Whatever the order of changes and however slowly a client reads, the events that it has
// received yield the pods of the node.
func TestAWatchConverges(t *testing.T) {
	dice := seedrun.Rand(t)
	n := newNode()
	s, client := serve(t, n, podsapi.Config{})
	watch, err := client.WatchPods(t.Context(), &api.WatchPodsRequest{})
	require.NoError(t, err)
	phases := []v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodFailed}
	for range 20_000 { // more than the buffers of the connection hold
		uid := fmt.Sprint(dice.IntN(10))
		if dice.IntN(3) == 0 {
			n.remove(uid)
		} else {
			n.put(uid, phases[dice.IntN(len(phases))])
		}
		s.PodChanged(types.UID(uid))
	}
	n.put("last", v1.PodRunning)
	s.PodChanged("last")
	got := map[types.UID]v1.PodPhase{}
	for got["last"] == "" {
		e, err := watch.Recv()
		require.NoError(t, err)
		if e.Type == api.EventType_INITIAL_SYNC_COMPLETE {
			continue
		}
		pod := decode(t, e.Pod)
		_, had := got[pod.UID]
		assert.Equal(t, had, e.Type != api.EventType_ADDED, "%s of %s", e.Type, pod.UID)
		if e.Type == api.EventType_DELETED {
			delete(got, pod.UID)
		} else {
			got[pod.UID] = pod.Status.Phase
		}
	}
	want := map[types.UID]v1.PodPhase{}
	for uid, s := range n.statuses {
		want[uid] = s.Phase
	}
	assert.Equal(t, want, got)
}

func TestRunEndsWatchesAndIsCalledOnce(t *testing.T) {
	n := newNode()
	socket := filepath.Join(t.TempDir(), "s")
	s, err := podsapi.New(podsapi.Config{Socket: socket, Pods: n})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	watch, err := api.NewPodsClient(conn).WatchPods(t.Context(), &api.WatchPodsRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	assert.Equal(t, "INITIAL_SYNC_COMPLETE", receive(t, watch))
	stop()
	require.NoError(t, <-ended)
	_, err = watch.Recv()
	require.Error(t, err)
	assert.EqualError(t, s.Run(t.Context()), "podsapi: Server.Run was called before")
}

func TestAConfigIsChecked(t *testing.T) {
	n := newNode()
	good := podsapi.Config{Socket: "s", Pods: n}
	for want, change := range map[string]func(*podsapi.Config){
		"podsapi: Config.Socket is empty":                                    func(c *podsapi.Config) { c.Socket = "" },
		"podsapi: Config.Pods is nil":                                        func(c *podsapi.Config) { c.Pods = nil },
		"podsapi: Config.QPS, Config.Burst or Config.MaxWatches is negative": func(c *podsapi.Config) { c.MaxWatches = -1 },
	} {
		bad := good
		change(&bad)
		_, err := podsapi.New(bad)
		assert.EqualError(t, err, want)
	}
}
