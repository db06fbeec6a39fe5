package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	criimages "github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// The engine behaves the same over a socket as without one: with the same schedule and
// the same faults, results, errors and containers are equal after each step.
func TestTheEngineDoesTheSameOverASocketAsWithoutOne(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			direct, served := newFake(t, randomFaults(seed)), newFake(t, randomFaults(seed))
			client := dial(t, start(t, serve.Config{Runtime: served, Images: served, Streams: served}), remote.Config{StreamLists: seed%2 == 1})
			a, b := newEngine(t, direct, direct, direct), newEngine(t, served, client.Runtime, client.Images)
			chance := rand.New(rand.NewPCG(seed, 0))
			for step := range 80 {
				what, pod, n := chance.IntN(10), chance.IntN(3), chance.IntN(3)
				was, is := a.step(what, pod, n), b.step(what, pod, n)
				require.Equal(t, "", difference(was, is), "seed %d, step %d: %d of pod %d", seed, step, what, pod)
			}
		})
	}
}

func randomFaults(seed uint64) fakecri.Config {
	faults := []fake.Fault{{Lost: true}}
	for _, code := range []codes.Code{codes.NotFound, codes.Unknown, codes.Unavailable, codes.DeadlineExceeded} {
		faults = append(faults, fake.Fault{Err: status.Error(code, "bad luck")})
	}
	return fakecri.Config{
		Seed: seed,
		// Clients start with Version. The number of ContainerStatus calls depends on timing,
		// so that they must not advance the sequence of random faults.
		Faults: fake.If(func(c fake.Call) bool { return c.Method != "Version" && c.Method != "ContainerStatus" },
			fake.Random(seed, 0.03, faults...)),
		Images: map[string]fake.Image{"missing": {Absent: true}, "rare": {PullFails: 1}},
		Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{
			"broken": {Fail: &fake.Failure{Reason: "StartError", Message: "no such file"}},
		}},
	}
}

// An engine is runtime/cri over a fake, directly or over a socket.
type engine struct {
	*testing.T
	fake *fakecri.Runtime
	*cri.Runtime
	dir string
}

func newEngine(t *testing.T, fake *fakecri.Runtime, rt internalapi.RuntimeService, images internalapi.ImageManagerService) *engine {
	t.Helper()
	dir := t.TempDir()
	e, err := cri.New(cri.Config{
		Name: "fakecri", Runtime: rt, Images: images, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"},
		// Time is real: no back-off may end during the test.
		Containers: cri.ContainerConfig{Backoff: plan.BackoffConfig{Initial: time.Hour, Max: time.Hour}},
		Pulls:      cri.PullConfig{Config: criimages.Config{Backoff: criimages.Backoff{Initial: time.Hour, Max: time.Hour}}},
	})
	require.NoError(t, err)
	return &engine{t, fake, e, dir}
}

// step performs one action, and returns its observable results except times.
func (e *engine) step(what, pod, n int) string {
	ctx, cancel := context.WithTimeout(e.Context(), 90*time.Second)
	defer cancel()
	image := []string{"web", "missing", "rare"}[pod]
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", pod), Namespace: "ns", UID: types.UID(fmt.Sprint("uid-", pod))},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: image}, {Name: "side", Image: "web"}, {Name: "broken", Image: "web"}}},
	}
	now, none := int64(0), runtime.GCPolicy{}
	var did any
	var err error
	switch what {
	case 0, 1, 2, 3:
		did, err = e.SyncPod(ctx, runtime.SyncRequest{Pod: p})
	case 4:
		err = e.KillPod(ctx, runtime.KillRequest{UID: p.UID, Pod: p, GracePeriodSeconds: &now})
	case 5:
		err = e.KillPod(ctx, runtime.KillRequest{UID: p.UID}) // an orphan
	case 6:
		err = e.fake.Exit(string(p.UID), []string{"main", "side", "broken"}[n], int32(n))
	case 7:
		err = e.fake.KillSandbox(string(p.UID))
	case 8:
		err = e.CollectGarbage(ctx, none)
	case 9:
		did, err = e.PodStats(ctx)
	}
	st, err2 := e.PodStatus(ctx, p.UID)
	list, err3 := e.Pods(ctx)
	seen, err4 := json.MarshalIndent([]any{
		did, failure(err), st, failure(err2), list, failure(err3), e.fake.Containers(""), e.fake.Sandboxes(""),
	}, "", " ")
	require.NoError(e, err4)
	return times.ReplaceAllString(strings.ReplaceAll(string(seen), e.dir, "DIR"), `"$1": TIME`)
}

var times = regexp.MustCompile(`"(\w*At|Created|Started|Ended|At|Time|Until|Took|RetryAt|Timestamp|Duration)": ("[^"]*"|\d+)`)

// failure returns the properties of err that callers distinguish.
func failure(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("an error, unavailable: %t", errors.Is(err, runtime.ErrUnavailable))
}

// difference returns the first line that differs, with those before it.
func difference(was, is string) string {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return strings.Join(a[max(0, i-12):i], "\n") + "\nwithout: " + a[i] + "\nwith:    " + b[i]
		}
	}
	if len(a) != len(b) {
		return "one of them has more"
	}
	return ""
}
