package agent_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

const webYAML = `
apiVersion: v1
kind: Pod
metadata:
  name: web
  uid: web-1
spec:
  containers:
  - name: server
    image: nginx
`

// An agent that runs the static pods of a directory, here on a runtime in memory.
func Example() {
	dir, err := os.MkdirTemp("", "manifests")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(webYAML), 0o600); err != nil {
		log.Fatal(err)
	}
	files, err := podsource.NewFile(podsource.FileConfig{Path: dir, NodeName: "edge-1"})
	if err != nil {
		log.Fatal(err)
	}
	var sink status.MemorySink
	a, err := agent.New(agent.Config{
		NodeName: "edge-1",
		Runtime:  new(runtimetest.Runtime), // in production: runtime/cri
		Sources:  map[string]podsource.PodSource{podsource.FileSource: files},
		Static:   []string{podsource.FileSource},
		Sink:     &sink,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- a.Run(ctx) }()

	running := func(s v1.PodStatus) bool { return s.Phase == v1.PodRunning }
	s, err := sink.Wait(ctx, "web-1", running)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("phase:", s.Phase)
	for _, pod := range a.Table().Desired() {
		fmt.Println("desired:", pod.Namespace+"/"+pod.Name)
	}
	fmt.Println("drain:", a.Drain(ctx))
	cancel()
	fmt.Println("run:", <-stopped)
	// Output:
	// phase: Running
	// desired: default/web-edge-1
	// drain: <nil>
	// run: <nil>
}

// newJob returns a pod that a program specifies itself.
func newJob(image string) *v1.Pod {
	return manifest.Default(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "default", UID: "job-1"},
		Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main", Image: image}}},
	})
}

// A finishes is a status.Sink that reports the phases of terminated pods.
type finishes chan string

func (f finishes) UpdatePodStatus(_ context.Context, pod *v1.Pod, s v1.PodStatus) error {
	if status.Terminal(s.Phase) {
		select {
		case f <- fmt.Sprint(pod.Name, " ", s.Phase):
		default: // reported before: delivery is at least once
		}
	}
	return nil
}

func (f finishes) DeletePod(context.Context, *v1.Pod) error { return nil }

// A source and a sink of one's own. A source passes the whole set of its pods to
// set, and again when the set changes.
func Example_sourceAndSink() {
	source := podsource.Func(func(ctx context.Context, set func([]*v1.Pod)) error {
		set([]*v1.Pod{newJob("batch")})
		<-ctx.Done()
		return nil
	})
	rt := new(runtimetest.Runtime)
	rt.Behave("batch", fake.Behavior{Exit: &fake.Exit{Code: 0}})
	sink := make(finishes, 1)
	a, err := agent.New(agent.Config{
		Runtime: rt, Sources: map[string]podsource.PodSource{podsource.APISource: source}, Sink: sink,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- a.Run(ctx) }()
	fmt.Println(<-sink)
	cancel()
	fmt.Println(<-stopped)
	// Output:
	// job Succeeded
	// <nil>
}

// A healthy is a prober.Handler. Real ones are prober.HTTPGet, prober.TCPSocket,
// prober.Exec and grpcprobe.Handler.
type healthy struct{}

func (healthy) Probe(_ context.Context, t prober.Target) (prober.Outcome, error) {
	fmt.Println("probe", t.Container.Name, "at path", t.Probe.HTTPGet.Path)
	return prober.Outcome{Result: runtime.ProbeSuccess}, nil
}

// Handlers of probes make the agent probe containers: the pod is ready when its
// readiness probe has succeeded.
func Example_probes() {
	pod := newJob("server")
	pod.Spec.Containers[0].ReadinessProbe = &v1.Probe{
		ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/ready"}}, PeriodSeconds: 3600, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
	var source podsource.Memory
	source.Set(pod)
	var sink status.MemorySink
	a, err := agent.New(agent.Config{
		Runtime:    new(runtimetest.Runtime),
		Sources:    map[string]podsource.PodSource{podsource.APISource: &source},
		Sink:       &sink,
		Subsystems: agent.Subsystems{Probes: prober.Handlers{HTTPGet: healthy{}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- a.Run(ctx) }()
	ready := func(s v1.PodStatus) bool { return status.IsReady(&s) }
	if _, err := sink.Wait(ctx, pod.UID, ready); err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	cancel()
	<-stopped
	// Output:
	// probe main at path /ready
	// ready
}

// An admitter decides whether a pod may run. The status of a rejected pod has its
// reason.
func Example_admission() {
	onlyOurs := pipeline.AdmitFunc(func(_ context.Context, pod *v1.Pod) *runtime.Rejection {
		for _, c := range pod.Spec.Containers {
			if !strings.HasPrefix(c.Image, "registry.example.com/") {
				return &runtime.Rejection{Reason: "ForeignImage", Message: fmt.Sprintf("image %q is not from registry.example.com", c.Image)}
			}
		}
		return nil
	})
	var source podsource.Memory
	source.Set(newJob("docker.io/library/nginx"))
	var sink status.MemorySink
	a, err := agent.New(agent.Config{
		Runtime:    new(runtimetest.Runtime),
		Sources:    map[string]podsource.PodSource{podsource.APISource: &source},
		Sink:       &sink,
		Subsystems: agent.Subsystems{Admitters: pipeline.Admitters{onlyOurs}},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- a.Run(ctx) }()
	failed := func(s v1.PodStatus) bool { return s.Phase == v1.PodFailed }
	s, err := sink.Wait(ctx, "job-1", failed)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Reason)
	fmt.Println(s.Message)
	cancel()
	<-stopped
	// Output:
	// ForeignImage
	// Pod was rejected: image "docker.io/library/nginx" is not from registry.example.com
}
