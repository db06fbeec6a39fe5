package fakecri_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const busybox = "kubeparts.test/busybox:1"

// commands are the containers' commands in a real runtime, by name.
var commands = map[string][]string{
	"long":      {"sh", "-c", "trap 'exit 143' TERM; while :; do sleep 0.02; done"},
	"stubborn":  {"sh", "-c", "trap '' TERM; echo ignores TERM; while :; do sleep 0.02; done"},
	"exit0":     {"true"},
	"exit3":     {"sh", "-c", "exit 3"},
	"nocommand": {"/no/such/command"},
}

// execs are the commands of the script in a real container.
var execs = map[string][]string{
	"fail 7": {"sh", "-c", "exit 7"},
	"hang":   {"sleep", "100"},
	"flood":  {"head", "-c", "17825792", "/dev/zero"},
}

// words are the arguments of a call, after its verb.
type words []string

// value returns the value of the argument key=.
func (w words) value(key string) string {
	for _, word := range w {
		if v, ok := strings.CutPrefix(word, key+"="); ok {
			return v
		}
	}
	return ""
}

// labels returns the labels of all arguments label=k:v.
func (w words) labels() map[string]string {
	var m map[string]string
	for _, word := range w {
		if v, ok := strings.CutPrefix(word, "label="); ok {
			if m == nil {
				m = map[string]string{}
			}
			key, value, _ := strings.Cut(v, ":")
			m[key] = value
		}
	}
	return m
}

func (w words) has(word string) bool { return slices.Contains(w, word) }

func (w words) number(key string) int64 {
	n, _ := strconv.ParseInt(w.value(key), 10, 64)
	return n
}

// arg returns the n-th argument without a key, with IDs instead of names.
func (s *subject) arg(w words, n int) string {
	if n >= len(w) {
		return ""
	}
	return s.id(w[n])
}

// call makes one call of the script.
func (s *subject) call(ctx context.Context, line []string) (string, error) {
	w := words(line[1:])
	switch first := s.arg(w, 0); line[0] {
	case "version":
		resp, err := s.runtime.Version(ctx, "0.1.0")
		return resp.GetVersion() + " " + resp.GetRuntimeApiVersion(), err
	case "status":
		resp, err := s.runtime.Status(ctx, false)
		var conditions []string
		for _, c := range resp.GetStatus().GetConditions() {
			if c.Type == runtimeapi.RuntimeReady || c.Type == runtimeapi.NetworkReady {
				conditions = append(conditions, fmt.Sprintf("%s=%t", c.Type, c.Status))
			}
		}
		return strings.Join(conditions, " "), err
	case "runtime-config":
		_, err := s.runtime.RuntimeConfig(ctx)
		return "", err
	case "update-runtime-config":
		return "", s.runtime.UpdateRuntimeConfig(ctx, &runtimeapi.RuntimeConfig{NetworkConfig: &runtimeapi.NetworkConfig{PodCidr: w.value("cidr")}})

	case "run":
		config := s.sandbox(w)
		if config != nil && config.Metadata != nil && w.value("name") != "" {
			s.sandboxes[w[0]] = config
		}
		id, err := s.runtime.RunPodSandbox(ctx, config, w.value("handler"))
		s.learn(w[0], id)
		return "", err
	case "stop-pod":
		return "", s.runtime.StopPodSandbox(ctx, first)
	case "remove-pod":
		return "", s.runtime.RemovePodSandbox(ctx, first)
	case "pod-status":
		resp, err := s.runtime.PodSandboxStatus(ctx, first, false)
		st := resp.GetStatus()
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %s %s/%s/%s/%d ip=%t labels=%v", st.GetId(), st.GetState(), st.GetMetadata().GetNamespace(),
			st.GetMetadata().GetName(), st.GetMetadata().GetUid(), st.GetMetadata().GetAttempt(), st.GetNetwork().GetIp() != "", st.GetLabels()), err
	case "list-pods":
		list, err := s.runtime.ListPodSandbox(ctx, s.podFilter(w))
		return names(s, list, (*runtimeapi.PodSandbox).GetId), err
	case "update-pod":
		_, err := s.runtime.UpdatePodSandboxResources(ctx, &runtimeapi.UpdatePodSandboxResourcesRequest{
			PodSandboxId: first, Resources: &runtimeapi.LinuxContainerResources{CpuShares: w.number("cpu")},
		})
		return "", err

	case "create":
		return "", s.create(ctx, w)
	case "start":
		return "", s.runtime.StartContainer(ctx, first)
	case "stop":
		grace, _ := strconv.ParseInt(s.arg(w, 1), 10, 64)
		return "", s.runtime.StopContainer(ctx, first, grace)
	case "remove":
		return "", s.runtime.RemoveContainer(ctx, first)
	case "container-status":
		resp, err := s.runtime.ContainerStatus(ctx, first, false)
		st := resp.GetStatus()
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %s %s/%d image=%s created=%t started=%t finished=%t code=%d reason=%q message=%t log=%s", st.GetId(), st.GetState(),
			st.GetMetadata().GetName(), st.GetMetadata().GetAttempt(), st.GetImage().GetImage(), st.GetCreatedAt() != 0, st.GetStartedAt() != 0,
			st.GetFinishedAt() != 0, st.GetExitCode(), st.GetReason(), st.GetMessage() != "", st.GetLogPath()), err
	case "list":
		list, err := s.runtime.ListContainers(ctx, s.containerFilter(w))
		return names(s, list, (*runtimeapi.Container).GetId), err
	case "update":
		var linux *runtimeapi.LinuxContainerResources
		if !w.has("none") {
			linux = &runtimeapi.LinuxContainerResources{CpuShares: w.number("cpu"), MemoryLimitInBytes: w.number("memory")}
		}
		return "", s.runtime.UpdateContainerResources(ctx, first, &runtimeapi.ContainerResources{Linux: linux})
	case "reopen":
		return "", s.runtime.ReopenContainerLog(ctx, first)
	}
	return s.callMore(ctx, line[0], w)
}

func (s *subject) callMore(ctx context.Context, verb string, w words) (string, error) {
	switch first := s.arg(w, 0); verb {
	case "exec-sync":
		timeout, _ := strconv.Atoi(s.arg(w, 1))
		out, _, err := s.runtime.ExecSync(ctx, first, command(w[2:]), time.Duration(timeout)*time.Second)
		if len(out) > 100 {
			return fmt.Sprintf("%d MiB", len(out)>>20), err
		}
		return strings.TrimSpace(string(out)), err
	case "exec":
		var cmd []string
		if len(w) > 1 {
			cmd = []string{w[1]}
		}
		streams := !w.has("nostreams")
		resp, err := s.runtime.Exec(ctx, &runtimeapi.ExecRequest{
			ContainerId: first, Cmd: cmd, Stdout: streams, Tty: w.has("tty") || w.has("tty-stderr"), Stderr: w.has("tty-stderr"),
		})
		return s.url(resp.GetUrl(), err)
	case "attach":
		resp, err := s.runtime.Attach(ctx, &runtimeapi.AttachRequest{ContainerId: first, Stdout: !w.has("nostreams")})
		return s.url(resp.GetUrl(), err)
	case "port-forward":
		var ports []int32
		if len(w) > 1 {
			port, _ := strconv.Atoi(w[1])
			ports = []int32{int32(port)}
		}
		resp, err := s.runtime.PortForward(ctx, &runtimeapi.PortForwardRequest{PodSandboxId: first, Port: ports})
		return s.url(resp.GetUrl(), err)

	case "stats":
		resp, err := s.runtime.ContainerStats(ctx, first)
		return figures(resp), err
	case "pod-stats":
		resp, err := s.runtime.PodSandboxStats(ctx, first)
		list := resp.GetLinux().GetContainers()
		return fmt.Sprintf("cpu=%t containers: %s", resp.GetLinux().GetCpu() != nil, names(s, list, containerOf)), err
	case "list-stats":
		var filter *runtimeapi.ContainerStatsFilter
		if len(w) > 0 {
			filter = &runtimeapi.ContainerStatsFilter{Id: s.id(w.value("id")), PodSandboxId: s.id(w.value("pod")), LabelSelector: w.labels()}
		}
		list, err := s.runtime.ListContainerStats(ctx, filter)
		return names(s, list, containerOf), err
	case "list-pod-stats":
		var filter *runtimeapi.PodSandboxStatsFilter
		if len(w) > 0 {
			filter = &runtimeapi.PodSandboxStatsFilter{Id: s.id(w.value("id")), LabelSelector: w.labels()}
		}
		list, err := s.runtime.ListPodSandboxStats(ctx, filter)
		return names(s, list, podOf), err
	case "metric-descriptors":
		list, err := s.runtime.ListMetricDescriptors(ctx)
		return fmt.Sprint(len(list) > 0), err
	case "list-metrics":
		list, err := s.runtime.ListPodSandboxMetrics(ctx)
		return names(s, list, (*runtimeapi.PodSandboxMetrics).GetPodSandboxId), err
	case "checkpoint":
		return "", s.runtime.CheckpointContainer(ctx, &runtimeapi.CheckpointContainerRequest{ContainerId: first, Location: s.logs + "/checkpoint"})
	case "checkpoint-pod":
		return "", s.runtime.CheckpointPod(ctx, &runtimeapi.CheckpointPodRequest{PodSandboxId: first})
	case "restore-pod":
		_, err := s.runtime.RestorePod(ctx, &runtimeapi.RestorePodRequest{})
		return "", err

	case "images":
		var filter *runtimeapi.ImageFilter
		if len(w) > 0 {
			filter = &runtimeapi.ImageFilter{Image: s.imageSpec(w[0])}
		}
		list, err := s.images.ListImages(ctx, filter)
		tags := map[string]bool{}
		for _, i := range list {
			for _, tag := range i.RepoTags {
				tags[tag] = true
			}
		}
		return strings.Join(sorted(tags), " "), err
	case "image-status":
		resp, err := s.images.ImageStatus(ctx, s.imageSpec(w[0]), false)
		if resp.GetImage() == nil {
			return "none", err
		}
		return strings.Join(resp.GetImage().GetRepoTags(), " "), err
	case "pull":
		var auth *runtimeapi.AuthConfig
		if user, password, ok := strings.Cut(w.value("auth"), ":"); ok {
			if password == "right" {
				password = s.password
			}
			auth = &runtimeapi.AuthConfig{Username: user, Password: password}
		}
		_, err := s.images.PullImage(ctx, s.imageSpec(w[0]), auth, nil)
		return "", err
	case "remove-image":
		return "", s.images.RemoveImage(ctx, s.imageSpec(w[0]))
	case "image-fs":
		resp, err := s.images.ImageFsInfo(ctx)
		return fmt.Sprint(len(resp.GetImageFilesystems()) > 0), err
	}
	return "", fmt.Errorf("the script has no verb %q", verb)
}

// sandbox returns the configuration that the words of run specify, which may be nil.
func (s *subject) sandbox(w words) *runtimeapi.PodSandboxConfig {
	if w.has("nil") {
		return nil
	}
	c := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{
			Name: w.value("name"), Namespace: w.value("ns"), Uid: w.value("uid"), Attempt: uint32(w.number("attempt")),
		},
		Labels: w.labels(), LogDirectory: s.logs,
		Linux: &runtimeapi.LinuxPodSandboxConfig{CgroupParent: s.cgroup},
	}
	if w.has("nometa") {
		c.Metadata = nil
	}
	return c
}

func (s *subject) create(ctx context.Context, w words) error {
	name := w.value("name")
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: uint32(w.number("attempt"))},
		Image:    &runtimeapi.ImageSpec{Image: busybox, UserSpecifiedImage: busybox}, Command: commands[name], Labels: w.labels(),
		LogPath: fmt.Sprintf("%s_%s_%d.log", w.value("in"), name, w.number("attempt")),
	}
	if slices.ContainsFunc(w, func(word string) bool { return strings.HasPrefix(word, "image=") }) {
		config.Image = &runtimeapi.ImageSpec{Image: w.value("image")}
	}
	switch {
	case w.has("nil"):
		config = nil
	case w.has("nometa"):
		config.Metadata = nil
	case w.has("noimage"):
		config.Image = nil
	}
	in := w.value("in")
	owner, _, _ := strings.Cut(in, "~")
	sandbox := s.sandboxes[owner]
	if w.has("nosandboxconfig") {
		sandbox = nil
	}
	id, err := s.runtime.CreateContainer(ctx, s.id(in), config, sandbox)
	s.learn(w[0], id)
	return err
}

func (s *subject) podFilter(w words) *runtimeapi.PodSandboxFilter {
	if len(w) == 0 {
		return nil
	}
	f := &runtimeapi.PodSandboxFilter{Id: s.id(w.value("id")), LabelSelector: w.labels()}
	switch w.value("state") {
	case "ready":
		f.State = &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}
	case "notready":
		f.State = &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY}
	}
	return f
}

func (s *subject) containerFilter(w words) *runtimeapi.ContainerFilter {
	if len(w) == 0 {
		return nil
	}
	f := &runtimeapi.ContainerFilter{Id: s.id(w.value("id")), PodSandboxId: s.id(w.value("pod")), LabelSelector: w.labels()}
	if state := w.value("state"); state != "" {
		f.State = &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState(runtimeapi.ContainerState_value["CONTAINER_"+strings.ToUpper(state)])}
	}
	return f
}

func (s *subject) imageSpec(word string) *runtimeapi.ImageSpec {
	name := s.id(word)
	if name == "busybox-id" {
		name = s.image
	}
	if rest, ok := strings.CutPrefix(name, "registry/"); ok {
		name = s.registry + "/" + rest
	}
	return &runtimeapi.ImageSpec{Image: name}
}

// names lists the names of IDs in order, so that lists can be compared.
func names[T any](s *subject, list []T, id func(T) string) string {
	var all []string
	for _, item := range list {
		all = append(all, s.named(id(item)))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// command returns the command that the arguments stand for.
func command(w []string) []string {
	if cmd, ok := execs[strings.Join(w, " ")]; ok {
		return cmd
	}
	return w
}

// url returns the part of a URL that is the same for all runtimes. A runtime in
// process has no URLs: its server has them.
func (s *subject) url(url string, err error) (string, error) {
	if s.inProcess && status.Code(err) == codes.Unimplemented {
		return "a URL", nil
	}
	if url == "" {
		return "no URL", err
	}
	return "a URL", err
}

func containerOf(st *runtimeapi.ContainerStats) string {
	return st.GetAttributes().GetId() + figures(st)
}

// figures returns the names of the measurements that are set.
func figures(st *runtimeapi.ContainerStats) string {
	var all []string
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"cpu", st.GetCpu().GetUsageCoreNanoSeconds() != nil}, // and the cores only where there were two samples
		{"memory", st.GetMemory().GetWorkingSetBytes() != nil}, {"disk", st.GetWritableLayer().GetUsedBytes() != nil},
	} {
		if f.has {
			all = append(all, f.name)
		}
	}
	return "(" + strings.Join(all, ",") + ")"
}

func podOf(st *runtimeapi.PodSandboxStats) string { return st.GetAttributes().GetId() }
