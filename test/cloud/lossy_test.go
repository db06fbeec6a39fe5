package cloud_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/test/cloud"
	"github.com/kubeparts/kubeparts/test/cloud/fakecloud"
)

var seed = flag.Uint64("seed", 0, "a single seed; 0: the seeds 1 to 200")

// A third of all calls fail or lose their answers, calls are interrupted, and the runtime is
// replaced: there are never two instances of a container, finally one of each, and after
// KillPod none.
func TestALossyCloudHasNoDuplicates(t *testing.T) {
	from, to := uint64(1), uint64(200)
	if *seed != 0 {
		from, to = *seed, *seed
	}
	for n := from; n <= to; n++ {
		ok := t.Run(fmt.Sprint("seed ", n), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { lossy(t, n) }) })
		if !ok {
			t.Fatalf("go test -run Lossy ./test/cloud -seed %d", n)
		}
	}
}

func lossy(t *testing.T, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	losing := true
	below := programs(&fakecloud.Cloud{Latency: time.Millisecond, Boot: 50 * time.Millisecond, Launch: 10 * time.Millisecond})
	below.Fault = func(call string, _ bool) error {
		mu.Lock()
		defer mu.Unlock()
		if losing && dice.IntN(6) == 0 { // checked before and after each call
			return fmt.Errorf("%s: %w", call, runtime.ErrUnavailable)
		}
		return nil
	}
	below.Behave("setup", fake.Behavior{Exit: &fake.Exit{After: 20 * time.Millisecond}})
	pod := podOf("a", v1.Container{Name: "app", Image: "long"}, v1.Container{Name: "log", Image: "long"})
	pod.Spec.InitContainers = []v1.Container{
		{Name: "setup", Image: "setup"},
		{Name: "proxy", Image: "long", RestartPolicy: new(v1.ContainerRestartPolicyAlways)},
	}
	var rt runtime.Runtime = over(t, below)
	shortly := func(do func(context.Context) error) error {
		mu.Lock()
		cut := time.Duration(1+dice.IntN(120)) * time.Millisecond
		again := dice.IntN(4) == 0
		mu.Unlock()
		if again {
			rt = over(t, below)
		}
		ctx, cancel := context.WithTimeout(t.Context(), cut)
		defer cancel()
		err := do(ctx)
		oneOfEach(t, below)
		return err
	}
	sync := func(ctx context.Context) error {
		_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
		return err
	}
	for range 30 {
		_ = shortly(sync)
	}
	mu.Lock()
	losing = false
	mu.Unlock()
	for range 5 {
		require.NoError(t, sync(t.Context()))
		time.Sleep(time.Second)
	}
	status := inspect(t, rt, "a")
	require.Len(t, status.Sandboxes, 1)
	require.Len(t, status.Containers, 4, "%+v", status.Containers)
	for _, name := range []string{"app", "log", "proxy"} {
		require.Equal(t, runtime.ContainerRunning, status.Container(name).State, name)
	}

	mu.Lock()
	losing = true
	mu.Unlock()
	for tries := 0; ; tries++ {
		require.Less(t, tries, 500)
		if shortly(func(ctx context.Context) error { return rt.KillPod(ctx, runtime.KillRequest{UID: "a"}) }) == nil {
			break
		}
	}
	mu.Lock()
	losing = false
	mu.Unlock()
	time.Sleep(time.Minute)
	status = inspect(t, rt, "a")
	require.False(t, status.Running())
	require.Len(t, status.Containers, 4)
}

// oneOfEach checks that there is at most one running machine, and one running process of
// each container.
func oneOfEach(t *testing.T, below *fakecloud.Cloud) {
	var machines []cloud.Machine
	for tries := 0; ; tries++ {
		var err error
		if machines, err = below.ListMachines(t.Context(), nil); err == nil {
			break
		}
		require.Less(t, tries, 100)
	}
	alive := map[string]int{}
	for _, m := range machines {
		if m.State != cloud.Ended {
			alive["the machine"]++
		}
		for _, p := range m.Processes {
			if p.State != cloud.Ended {
				alive[p.Tags["kubeparts.container"]]++
			}
		}
	}
	for what, n := range alive {
		require.LessOrEqual(t, n, 1, "instances of %s", what)
	}
}
