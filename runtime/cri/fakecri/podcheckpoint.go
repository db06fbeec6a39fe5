package fakecri

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// checkpointFile is the only file of a checkpoint of a pod.
const checkpointFile = "fakecri.json"

// maxCheckpoint is the maximum size of a checkpoint in bytes: that of a message of the CRI, which has the
// configurations of its containers.
const maxCheckpoint = 16 << 20

// A podImage is the content of a checkpoint of a pod.
type podImage struct {
	Handler    string           `json:"handler,omitempty"`
	Containers []containerImage `json:"containers"` // oldest first
}

// A containerImage is a running container at the time of a checkpoint.
type containerImage struct {
	Name    string        `json:"name"`
	Image   string        `json:"image"` // its ID
	Process []string      `json:"process,omitempty"`
	Ran     time.Duration `json:"ran"` // of its process
}

// processOf returns what a restored process must have in common with the configuration.
func processOf(c *runtimeapi.ContainerConfig) []string {
	return slices.Concat(c.GetCommand(), []string{""}, c.GetArgs(), []string{"", c.GetWorkingDir()})
}

// CheckpointPod writes a checkpoint of running containers, which all are as of one moment, to an
// empty directory. The containers continue to run. It requires Config.PodCheckpoints.
func (r *Runtime) CheckpointPod(ctx context.Context, options *runtimeapi.CheckpointPodRequest) error {
	return act(ctx, r, r.ofSandbox("CheckpointPod", options.GetPodSandboxId()), func(ctx context.Context) error {
		if !r.cfg.PodCheckpoints {
			return unimplemented("CheckpointPod", "Config.PodCheckpoints is false")
		}
		dir := options.GetOutputPath()
		if err := checkCall(ctx, "checkpoint", dir, options.GetOptions()); err != nil {
			return err
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			return refused("checkpoint pod: output_path %s is not an empty directory: %v", dir, err)
		}
		image, err := r.podImage(ctx, options)
		if err != nil {
			return err
		}
		data, err := json.Marshal(image)
		if err != nil {
			return refused("checkpoint pod: %v", err)
		}
		if len(data) > maxCheckpoint {
			return refused("checkpoint pod: its processes have %d bytes; the limit is %d", len(data), maxCheckpoint)
		}
		file := filepath.Join(dir, checkpointFile)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			_ = os.Remove(file) // nothing partial remains
			return refused("checkpoint pod: %v", err)
		}
		return nil
	})
}

// checkCall validates what both calls have in common.
func checkCall(ctx context.Context, what, dir string, options map[string]string) error {
	switch _, limited := ctx.Deadline(); {
	case !limited:
		return refused("%s pod: the call has no deadline", what)
	case !filepath.IsAbs(dir):
		return refused("%s pod: %q is not an absolute path", what, dir)
	case len(options) > 0:
		return refused("%s pod: there are no options", what)
	}
	return nil
}

// podImage returns the state of the containers of a request.
func (r *Runtime) podImage(ctx context.Context, options *runtimeapi.CheckpointPodRequest) (podImage, error) {
	if err := r.begin(ctx); err != nil {
		return podImage{}, err
	}
	defer r.unlock()
	s, err := r.sandboxes.find(options.GetPodSandboxId())
	if err != nil {
		return podImage{}, unknownID("sandbox", options.GetPodSandboxId(), err)
	}
	if !s.ready {
		return podImage{}, notRunning("checkpoint pod", s)
	}
	ids := options.GetContainerIds()
	image := podImage{Handler: s.handler}
	for _, c := range s.containers {
		if slices.Contains(ids, c.id) && c.running() {
			image.Containers = append(image.Containers, containerImage{
				Name: c.name(), Image: c.image.id, Process: processOf(c.config), Ran: c.ran + time.Duration(now()-c.started),
			})
		}
	}
	if len(ids) == 0 || len(image.Containers) != len(ids) {
		return podImage{}, refused("checkpoint pod %s: %d of the %d containers of the request run in it", s.id, len(image.Containers), len(ids))
	}
	return image, nil
}

// RestorePod creates a sandbox and containers from a checkpoint. The containers are created; each
// continues its process when it is started: a fake.Behavior.Exit.After that it had before the
// checkpoint is not repeated. It requires Config.PodCheckpoints.
func (r *Runtime) RestorePod(ctx context.Context, options *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	c := fake.Call{Method: "RestorePod", Pod: types.UID(options.GetConfig().GetMetadata().GetUid())}
	return call(ctx, r, c, func(ctx context.Context) (*runtimeapi.RestorePodResponse, error) {
		if !r.cfg.PodCheckpoints {
			return nil, unimplemented("RestorePod", "Config.PodCheckpoints is false")
		}
		options := proto.CloneOf(options)
		dir := options.GetCheckpointPath()
		if err := checkCall(ctx, "restore", dir, options.GetOptions()); err != nil {
			return nil, err
		}
		if options.GetConfig().GetMetadata() == nil {
			return nil, refused("restore pod: the config of its sandbox has no metadata")
		}
		data, err := untrusted.ReadFile(filepath.Join(dir, checkpointFile), maxCheckpoint)
		if err != nil {
			return nil, refused("restore pod: %v", err)
		}
		var image podImage
		if err := json.Unmarshal(data, &image); err != nil {
			return nil, refused("restore pod: %s: %v", dir, err)
		}
		if err := r.begin(ctx); err != nil {
			return nil, err
		}
		defer r.unlock()
		return r.restoreLocked(options, image)
	})
}

// restoreLocked creates what RestorePod returns. After an error nothing remains.
func (r *Runtime) restoreLocked(options *runtimeapi.RestorePodRequest, image podImage) (answer *runtimeapi.RestorePodResponse, err error) {
	configs := options.GetContainerConfigs()
	if len(configs) == 0 || len(configs) != len(image.Containers) {
		return nil, refused("restore pod: the checkpoint has %d containers, the request %d", len(image.Containers), len(configs))
	}
	if handler := options.GetRuntimeHandler(); handler != image.Handler {
		return nil, refused("restore pod: the checkpoint is of the runtime handler %q, not of %q", image.Handler, handler)
	}
	s, err := r.createSandboxLocked(options.GetConfig(), options.GetRuntimeHandler())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = r.removeSandboxLocked(s) // no container is being started
		}
	}()
	answer = &runtimeapi.RestorePodResponse{PodSandboxId: s.id}
	for _, of := range image.Containers {
		i := slices.IndexFunc(configs, func(c *runtimeapi.ContainerConfig) bool { return c.GetMetadata().GetName() == of.Name })
		if i < 0 {
			return nil, refused("restore pod: the request has no container %q", of.Name)
		}
		c, err := r.createLocked(s, configs[i], options.GetConfig())
		if err != nil {
			return nil, err
		}
		if c.image.id != of.Image || !slices.Equal(processOf(c.config), of.Process) {
			return nil, refused("restore pod: container %s has another image or process than in the checkpoint", of.Name)
		}
		c.ran = of.Ran
		answer.RestoredContainers = append(answer.RestoredContainers, &runtimeapi.RestoredContainer{Name: of.Name, ContainerId: c.id})
	}
	return answer, nil
}
