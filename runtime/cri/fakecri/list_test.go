package fakecri_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

func TestListsAreFiltered(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		web, sandboxA := n.started()
		job := n.created(sandboxA, "a", "job", 0)
		sandboxB := n.sandbox("b")
		other := n.created(sandboxB, "b", "web", 0)
		require.NoError(n, n.StartContainer(n.ctx, other))
		require.NoError(n, n.StopPodSandbox(n.ctx, sandboxB))

		label := func(k, v string) map[string]string { return map[string]string{k: v} }
		for what, c := range map[string]struct {
			filter *runtimeapi.ContainerFilter
			want   []string
		}{
			"no filter":                  {nil, []string{web, job, other}},
			"empty filter":               {&runtimeapi.ContainerFilter{}, []string{web, job, other}},
			"by ID":                      {&runtimeapi.ContainerFilter{Id: job}, []string{job}},
			"by its prefix":              {&runtimeapi.ContainerFilter{Id: job[:12]}, []string{job}},
			"by an unknown ID":           {&runtimeapi.ContainerFilter{Id: "00ff00ff"}, nil},
			"by the sandbox's":           {&runtimeapi.ContainerFilter{Id: sandboxA}, nil},
			"by sandbox":                 {&runtimeapi.ContainerFilter{PodSandboxId: sandboxA}, []string{web, job}},
			"by the prefix of a sandbox": {&runtimeapi.ContainerFilter{PodSandboxId: sandboxA[:12]}, []string{web, job}},
			"by unknown sandbox":         {&runtimeapi.ContainerFilter{PodSandboxId: "00ff00ff"}, nil},
			"by state":                   {&runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_EXITED}}, []string{other}},
			"by state created":           {&runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{}}, []string{job}},
			"by pod":                     {&runtimeapi.ContainerFilter{LabelSelector: label("io.kubernetes.pod.uid", "a")}, []string{web, job}},
			"by unknown pod":             {&runtimeapi.ContainerFilter{LabelSelector: label("io.kubernetes.pod.uid", "c")}, nil},
			"by another label":           {&runtimeapi.ContainerFilter{LabelSelector: label("io.kubernetes.container.name", "web")}, []string{web, other}},
			"by all of them":             {&runtimeapi.ContainerFilter{Id: web[:12], PodSandboxId: sandboxA, LabelSelector: label("io.kubernetes.pod.uid", "a")}, []string{web}},
			"by contradicting filters":   {&runtimeapi.ContainerFilter{PodSandboxId: sandboxA, LabelSelector: label("io.kubernetes.pod.uid", "b")}, nil},
		} {
			list, err := n.ListContainers(n.ctx, c.filter)
			require.NoError(n, err)
			var got []string
			for _, c := range list {
				got = append(got, c.Id)
			}
			assert.Equal(n, c.want, got, what)
		}
		for what, c := range map[string]struct {
			filter *runtimeapi.PodSandboxFilter
			want   []string
		}{
			"no filter":        {nil, []string{sandboxA, sandboxB}},
			"by ID":            {&runtimeapi.PodSandboxFilter{Id: sandboxB}, []string{sandboxB}},
			"by its prefix":    {&runtimeapi.PodSandboxFilter{Id: sandboxB[:12]}, []string{sandboxB}},
			"by state":         {&runtimeapi.PodSandboxFilter{State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY}}, []string{sandboxB}},
			"by pod":           {&runtimeapi.PodSandboxFilter{LabelSelector: label("io.kubernetes.pod.uid", "a")}, []string{sandboxA}},
			"by a label":       {&runtimeapi.PodSandboxFilter{LabelSelector: label("app", "shop")}, []string{sandboxA, sandboxB}},
			"by no such label": {&runtimeapi.PodSandboxFilter{LabelSelector: label("app", "")}, nil},
		} {
			list, err := n.ListPodSandbox(n.ctx, c.filter)
			require.NoError(n, err)
			var got []string
			for _, s := range list {
				got = append(got, s.Id)
			}
			assert.Equal(n, c.want, got, what)
		}
	})
}

func TestAWrongLabelIsFound(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		sandbox := n.sandbox("a")
		n.created(sandbox, "a", "first", 0)
		mislabeled := n.created(sandbox, "b", "mislabeled", 0) // its label names pod b
		list, err := n.ListContainers(n.ctx, &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": "b"}})
		require.NoError(n, err)
		require.Len(n, list, 1)
		assert.Equal(n, mislabeled, list[0].Id)
	})
}

func TestAnAmbiguousIDPrefixIsNotFound(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		begins := map[byte]string{}
		for i := range 17 { // two of them begin with the same digit
			id := n.sandbox(fmt.Sprint(i))
			if _, ok := begins[id[0]]; !ok {
				begins[id[0]] = id
				continue
			}
			_, err := n.PodSandboxStatus(n.ctx, id[:1], false)
			assert.ErrorContains(n, err, "multiple IDs")
			list, err := n.ListPodSandbox(n.ctx, &runtimeapi.PodSandboxFilter{Id: id[:1]})
			require.NoError(n, err)
			assert.Empty(n, list)
			return
		}
		n.Fatal("17 IDs have 17 first digits")
	})
}

func TestListsCanBeStale(t *testing.T) {
	var age time.Duration
	cfg := fakecri.Config{Faults: func(fake.Call) fake.Fault { return fake.Fault{Stale: age} }}
	on(t, cfg, func(n *node) {
		_, sandbox := n.started() // at 0 s
		time.Sleep(10 * time.Second)
		require.NoError(n, n.Exit("a", "web", 1)) // at 10 s
		time.Sleep(10 * time.Second)
		require.NoError(n, n.RemovePodSandbox(n.ctx, sandbox)) // at 20 s
		n.sandbox("b")
		time.Sleep(10 * time.Second) // it is 30 s

		show := func() string {
			containers, err := n.ListContainers(n.ctx, nil)
			require.NoError(n, err)
			sandboxes, err := n.ListPodSandbox(n.ctx, nil)
			require.NoError(n, err)
			var text string
			for _, s := range sandboxes {
				text += s.Metadata.Uid + " " + s.State.String() + " "
			}
			for _, c := range containers {
				text += c.Metadata.Name + " " + c.State.String()
			}
			return text
		}
		for _, c := range []struct {
			age  time.Duration
			want string
		}{
			{0, "b SANDBOX_READY "},
			{5 * time.Second, "b SANDBOX_READY "},
			{15 * time.Second, "a SANDBOX_READY web CONTAINER_EXITED"},
			{25 * time.Second, "a SANDBOX_READY web CONTAINER_RUNNING"},
			{time.Minute, ""},
		} {
			age = c.age
			assert.Equal(n, c.want, show(), "%v old", c.age)
		}
		age = 15 * time.Second
		list, err := n.ListContainers(n.ctx, &runtimeapi.ContainerFilter{
			State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
		})
		require.NoError(n, err)
		assert.Empty(n, list, "the filter applies to the stale list")
	})
}

func TestAListIsAtMostAsOldAsTheHistory(t *testing.T) {
	stale := fake.On(fake.Always(fake.Fault{Stale: time.Hour}), "ListPodSandbox")
	on(t, fakecri.Config{Faults: stale}, func(n *node) {
		for i := range 5000 { // one change each
			cfg := podConfig("a")
			cfg.Metadata.Attempt = uint32(i)
			_, err := n.RunPodSandbox(n.ctx, cfg, "")
			require.NoError(n, err)
			time.Sleep(time.Millisecond)
		}
		list, err := n.ListPodSandbox(n.ctx, nil)
		require.NoError(n, err)
		assert.Len(n, list, 5000-4096)
	})
}
