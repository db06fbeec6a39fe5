package podlog_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/internal/podlog"
)

func TestWhichContainersLogIsRead(t *testing.T) { // la-4
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	terminated := func(id string) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: id}}
	}
	waiting := func(why string) v1.ContainerState {
		return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: why}}
	}
	for name, c := range map[string]struct {
		state, last v1.ContainerState
		previous    bool
		want, err   string
	}{
		"it runs":                           {state: running, last: terminated("old"), want: "now"},
		"it has ended":                      {state: terminated("ended"), last: terminated("old"), want: "ended"},
		"it has ended before it was made":   {state: terminated(""), last: terminated("old"), want: "old"},
		"it has ended and never was":        {state: terminated(""), err: `container "c" in pod "p" is terminated`},
		"it waits to be started again":      {state: waiting("CrashLoopBackOff"), last: terminated("old"), want: "old"},
		"nothing but that it had ended":     {last: terminated("old"), want: "old"},
		"it had ended and never was":        {last: terminated(""), err: `container "c" in pod "p" is terminated`},
		"the previous one":                  {state: running, last: terminated("old"), previous: true, want: "old"},
		"there is no previous one":          {state: running, previous: true, err: `previous terminated container "c" in pod "p" not found`},
		"the previous one has no name":      {state: running, last: terminated(""), previous: true, err: `previous terminated container "c" in pod "p" not found`},
		"there is one, but no previous one": {state: terminated("ended"), previous: true, err: `previous terminated container "c" in pod "p" not found`},
		"its image cannot be pulled":        {state: waiting("ErrImagePull"), err: `container "c" in pod "p" is waiting to start: image can't be pulled`},
		"its image could not be pulled":     {state: waiting("ImagePullBackOff"), err: `container "c" in pod "p" is waiting to start: trying and failing to pull image`},
		"it waits for something else":       {state: waiting("PodInitializing"), err: `container "c" in pod "p" is waiting to start: PodInitializing`},
		"nothing":                           {err: `container "c" in pod "p" is waiting to start - no logs yet`},
		"it runs, its ID is unknown":        {state: running, err: `container "c" in pod "p" is waiting to start - no logs yet`},
	} {
		t.Run(name, func(t *testing.T) {
			st := v1.ContainerStatus{Name: "c", State: c.state, LastTerminationState: c.last}
			if c.state.Running != nil && c.err == "" || c.previous {
				st.ContainerID = "now"
			}
			other := v1.ContainerStatus{Name: "other", State: running, ContainerID: "other"}
			for kind, status := range map[string]*v1.PodStatus{
				"regular":   {ContainerStatuses: []v1.ContainerStatus{other, st}},
				"init":      {InitContainerStatuses: []v1.ContainerStatus{st}, ContainerStatuses: []v1.ContainerStatus{other}},
				"ephemeral": {EphemeralContainerStatuses: []v1.ContainerStatus{st}, ContainerStatuses: []v1.ContainerStatus{other}},
			} {
				id, err := podlog.ContainerID("p", status, "c", c.previous)
				assert.Equal(t, c.want, id, kind)
				if c.err == "" {
					assert.NoError(t, err, kind)
				} else {
					assert.EqualError(t, err, c.err, kind)
				}
			}
		})
	}
	_, err := podlog.ContainerID("p", &v1.PodStatus{}, "c", false)
	assert.EqualError(t, err, `container "c" in pod "p" is not available`)
}
