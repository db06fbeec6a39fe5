package status_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/status"
)

func TestDescribeListsChanges(t *testing.T) {
	of := func(phase v1.PodPhase, c ...v1.ContainerStatus) *v1.PodStatus {
		return &v1.PodStatus{Phase: phase, ContainerStatuses: c}
	}
	again := up("main")
	again.ContainerID, again.RestartCount = "x://main-1", 1
	crash := loops("main", 1)
	crash.State.Waiting.Message = "back-off 20s restarting failed container=main pod=web_default(uid)"
	noImage := waits("main")
	noImage.State.Waiting = &v1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image\nreally"}
	oom := done("main", 137)
	oom.State.Terminated.Reason = "OOMKilled"
	gone := waits("main")
	gone.LastTerminationState.Terminated = &v1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"}

	for name, tc := range map[string]struct {
		old, new *v1.PodStatus
		want     string
	}{
		"nothing":                {of(v1.PodRunning, up("main")), of(v1.PodRunning, up("main")), ""},
		"first seen":             {of(""), of(v1.PodPending, waits("main")), "Pending ready=0/1 restarts=0"},
		"started":                {of(v1.PodPending, waits("main")), of(v1.PodRunning, up("main")), "container main started|Running ready=1/1 restarts=0"},
		"taken over":             {of(""), of(v1.PodRunning, up("main")), "container main runs|Running ready=1/1 restarts=0"},
		"taken over, restarted":  {of(""), of(v1.PodRunning, again), "container main runs (restart 1)|Running ready=1/1 restarts=1"},
		"became ready":           {of(v1.PodRunning, notStarted(up("main"))), of(v1.PodRunning, up("main")), "container main is ready|Running ready=1/1 restarts=0"},
		"became unready":         {of(v1.PodRunning, up("main")), of(v1.PodRunning, notStarted(up("main"))), "container main is not ready|Running ready=0/1 restarts=0"},
		"exited":                 {of(v1.PodRunning, up("main")), of(v1.PodRunning, done("main", 1)), "container main exited(1)|Running ready=0/1 restarts=0"},
		"killed":                 {of(v1.PodRunning, up("main")), of(v1.PodRunning, oom), "container main exited(137) OOMKilled|Running ready=0/1 restarts=0"},
		"crashed":                {of(v1.PodRunning, up("main")), of(v1.PodRunning, crash), "container main exited(1), restarting in 20s (CrashLoopBackOff)|Running ready=0/1 restarts=0"},
		"crash loop":             {of(v1.PodRunning, done("main", 1)), of(v1.PodRunning, crash), "container main exited(1), restarting in 20s (CrashLoopBackOff)"},
		"crash loop, other text": {of(v1.PodRunning, up("main")), of(v1.PodRunning, loops("main", 1)), "container main exited(1), waiting: CrashLoopBackOff|Running ready=0/1 restarts=0"},
		"still in it":            {of(v1.PodRunning, crash), of(v1.PodRunning, crash), ""},
		"out of it for a moment": {of(v1.PodRunning, crash), of(v1.PodRunning, done("main", 1)), ""},
		"restarted":              {of(v1.PodRunning, crash), of(v1.PodRunning, again), "container main started again (restart 1)|Running ready=1/1 restarts=1"},
		"no image":               {of(v1.PodPending, waits("main")), of(v1.PodPending, noImage), "container main waiting: ErrImagePull: no such image"},
		"lost":                   {of(v1.PodRunning, up("main")), of(v1.PodRunning, gone), "container main exited(137) ContainerStatusUnknown, waiting: ContainerCreating|Running ready=0/1 restarts=0"},
		"evicted":                {of(v1.PodRunning, done("main", 1)), &v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted", Message: "low on memory", ContainerStatuses: []v1.ContainerStatus{done("main", 1)}}, "Failed (Evicted: low on memory) ready=0/1 restarts=0"},
		"init":                   {&v1.PodStatus{}, &v1.PodStatus{Phase: v1.PodPending, InitContainerStatuses: []v1.ContainerStatus{done("setup", 0)}}, "init container setup exited(0)|Pending ready=0/0 restarts=0"},
		"zero statuses":          {&v1.PodStatus{}, &v1.PodStatus{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, strings.Join(status.Describe(tc.old, tc.new), "|"))
		})
	}
	s := v1.PodStatus{StartTime: new(metav1.Now())}
	assert.Equal(t, "Unknown ready=0/0 restarts=0", status.Summary(&s))
}
