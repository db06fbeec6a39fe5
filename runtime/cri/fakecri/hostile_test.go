package fakecri_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Every method returns a response or an error for a nil request.
func TestRequestsThatAreNilDoNotPanic(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		n.started()
		for _, kind := range []reflect.Type{reflect.TypeFor[internalapi.RuntimeService](), reflect.TypeFor[internalapi.ImageManagerService]()} {
			for i := range kind.NumMethod() {
				method := reflect.ValueOf(n.Runtime).MethodByName(kind.Method(i).Name)
				ctx, cancel := context.WithTimeout(n.ctx, time.Second)
				args := []reflect.Value{reflect.ValueOf(ctx)}
				for i := 1; i < method.Type().NumIn(); i++ {
					args = append(args, reflect.Zero(method.Type().In(i)))
				}
				assert.NotPanics(n, func() { method.Call(args) }, "%s", kind.Method(i).Name)
				cancel()
			}
		}
	})
}

func TestAbsurdTimesAreAccepted(t *testing.T) {
	on(t, does(fake.Behavior{IgnoreTERM: true, Commands: []fake.Command{{Takes: time.Hour, Stdout: "done"}}}), func(n *node) {
		id, _ := n.started()
		out, _, err := n.ExecSync(n.ctx, id, []string{"x"}, math.MaxInt64)
		require.NoError(n, err)
		assert.Equal(n, "done", string(out))
		ctx, cancel := context.WithTimeout(n.ctx, 24*time.Hour)
		defer cancel()
		require.Error(n, n.StopContainer(ctx, id, math.MaxInt64), "the stop waits until it is canceled")
		require.NoError(n, n.StopContainer(n.ctx, id, math.MinInt64), "a negative timeout kills at once")
		n.exited(id, 137, "Error", 0)
	})
	for name, b := range map[string]fake.Behavior{
		`"start=-1s": -1s is negative`:            {StartDelay: -time.Second},
		`"exit=0@-1ns": -1ns is negative`:         {Exit: &fake.Exit{After: -1}},
		`is negative or more than ten years`:      {Exit: &fake.Exit{After: math.MaxInt64}},
		`"stopCode=-1": "-1" is not a number`:     {StopCode: -1},
		`"exit=65536": "65536" is not a number`:   {Exit: &fake.Exit{Code: 1 << 16}},
		`"crashes=-1": "-1" is not a number`:      {Exit: &fake.Exit{Crashes: -1}},
		`is not a number from 0 to 1.12589990684`: {Memory: fake.Curve{Points: []fake.Point{{Value: 1e18}}}},
		`"NaN" is not a number`:                   {CPU: fake.Curve{Points: []fake.Point{{Value: math.NaN()}}}},
		`every: less than 1ms`:                    {Logs: []fake.LogLine{{Every: 1}}},
		`"http=65536": "65536" is not a number`:   {Endpoints: []fake.Endpoint{{HTTP: true, Port: 65536}}},
		`"takes=-1ns": -1ns is negative`:          {Commands: []fake.Command{{Takes: -1}}},
		`ready is not supported`:                  {ReadyAfter: time.Second},
	} {
		_, err := fakecri.New(does(b))
		assert.ErrorContains(t, err, name)
		assert.ErrorContains(t, err, "fakecri: Config: container web: ")
	}
}

// Removing a pod with very many containers is fast.
func TestAPodOfVeryManyContainersCanBeRemoved(t *testing.T) {
	n := &node{t, newRuntime(t, fakecri.Config{}), t.Context()} // on the real clock
	sandbox := n.sandbox("a")
	for i := range 10_000 {
		n.created(sandbox, "a", fmt.Sprint("web-", i), 0)
	}
	begun := time.Now()
	require.NoError(n, n.RemovePodSandbox(n.ctx, sandbox))
	t.Logf("removed within %v", time.Since(begun))
	assert.Less(n, time.Since(begun), time.Minute)
	assert.Empty(n, n.Containers(""))
}

// The length of labels and annotations is not limited.
func TestAnAnnotationOfTenMiBIsKept(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		cfg := podConfig("a")
		cfg.Annotations["long"] = strings.Repeat("x", 10<<20)
		id, err := n.RunPodSandbox(n.ctx, cfg, "")
		require.NoError(n, err)
		resp, err := n.PodSandboxStatus(n.ctx, id, false)
		require.NoError(n, err)
		assert.Len(n, resp.Status.Annotations["long"], 10<<20)

		cfg = podConfig("b")
		cfg.Annotations[fakecri.AnnotationBehavior] = "log=" + strings.Repeat("x", 10<<20)
		id, err = n.RunPodSandbox(n.ctx, cfg, "")
		require.NoError(n, err)
		container := containerConfig("b", "web")
		_, err = n.PullImage(n.ctx, container.Image, nil, nil)
		require.NoError(n, err)
		_, err = n.CreateContainer(n.ctx, id, container, cfg)
		assert.ErrorContains(n, err, "longer than 1048576 bytes")
	})
}

// A container without the kubelet's labels, as other programs create, is listed while
// it exists; after its removal, listing one pod costs the same as before.
func TestAContainerWithoutLabelsIsForgottenWhenItIsRemoved(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		id, err := n.RunPodSandbox(n.ctx, &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "mine"}}, "")
		require.NoError(n, err)
		require.NoError(n, n.RemovePodSandbox(n.ctx, id))
		n.started()
		mislabeled := podConfig("b")
		mislabeled.Labels["io.kubernetes.pod.uid"] = "a"
		id, err = n.RunPodSandbox(n.ctx, mislabeled, "")
		require.NoError(n, err)
		ofA := func() int {
			list, err := n.ListPodSandbox(n.ctx, &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": "a"}})
			require.NoError(n, err)
			return len(list)
		}
		assert.Equal(n, 2, ofA())
		require.NoError(n, n.RemovePodSandbox(n.ctx, id))
		assert.Equal(n, 1, ofA())
	})
}
