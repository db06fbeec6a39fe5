package cloud_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/test/cloud"
	"github.com/kubeparts/kubeparts/test/cloud/fakecloud"
)

// A subject is a runtime and its cloud.
type subject struct {
	*cloud.Runtime
	below *fakecloud.Cloud
}

func over(t *testing.T, below *fakecloud.Cloud) *subject {
	rt, err := cloud.New(cloud.Config{Cloud: below, Node: "node"})
	require.NoError(t, err)
	return &subject{Runtime: rt, below: below}
}

// programs sets the behavior of the images of the suite.
func programs(below *fakecloud.Cloud) *fakecloud.Cloud {
	for _, image := range []string{"long", "long-2"} {
		below.Behave(image, fake.Behavior{StopDelay: time.Millisecond})
	}
	below.Behave("stubborn", fake.Behavior{IgnoreTERM: true})
	for code := range int32(43) {
		below.Behave(exits(code).Image, fake.Behavior{Exit: &fake.Exit{After: 5 * time.Millisecond, Code: code}})
	}
	below.Behave("prints out of luck", fake.Behavior{Exit: &fake.Exit{After: 5 * time.Millisecond, Code: 1, Message: "out of luck"}})
	return below
}

func exits(code int32) v1.Container { return v1.Container{Image: "exit-" + string(rune('0'+code))} }

var suite = runtimetest.Suite{
	Containers: runtimetest.Containers{
		Long:       v1.Container{Image: "long"},
		Stubborn:   v1.Container{Image: "stubborn"},
		OtherImage: "long-2",
		Exit:       exits,
		Message:    func(text string) v1.Container { return v1.Container{Image: "prints " + text} },
	},
	Backend: runtimetest.Backend{
		Reopen: func(t *testing.T, rt runtime.Runtime) runtime.Runtime {
			return over(t, rt.(*subject).below) // a new one: all state is in the cloud
		},
		LoseSandbox: func(t *testing.T, rt runtime.Runtime, uid types.UID) error {
			status, err := rt.PodStatus(t.Context(), uid)
			require.NoError(t, err)
			return rt.(*subject).below.Crash(status.Sandboxes[0].ID)
		},
		Calls: func(rt runtime.Runtime) int { return rt.(*subject).below.Calls() },
	},
	Within: synctest.Test,
}

func TestTheCloudKeepsTheContract(t *testing.T) {
	runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime {
		return over(t, programs(new(fakecloud.Cloud)))
	}, suite)
}

func TestASlowCloudKeepsTheContract(t *testing.T) {
	runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime {
		return over(t, programs(&fakecloud.Cloud{Latency: 2 * time.Millisecond, Boot: 70 * time.Millisecond, Launch: 15 * time.Millisecond}))
	}, suite)
}
