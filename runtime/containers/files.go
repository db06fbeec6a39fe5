package containers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// filesRoot is the directory of volumes that are data, for the engine: it does not exist, and package cri does
// not open the paths of volumes without a subPath.
const filesRoot = "/volumes-as-data/"

// volumeFiles are the contents of volumes. Safe for concurrent use.
type volumeFiles struct {
	mu   sync.Mutex
	pods map[types.UID]map[string]*runtime.Content // by volume

	// updated are the contents that were passed to a running instance by UpdateFiles, by Key and path.
	updated map[string]map[string]*runtime.Content
}

// set stores the contents of a pod's volumes and returns the volumes with paths for the engine.
func (f *volumeFiles) set(pod *v1.Pod, volumes map[string]runtime.Volume) map[string]runtime.Volume {
	contents := map[string]*runtime.Content{}
	volumes = maps.Clone(volumes)
	for name, v := range volumes {
		if v.Content != nil {
			contents[name] = v.Content
			v.Path = filesRoot + string(pod.UID) + "/" + name
			volumes[name] = v
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods[pod.UID] = contents
	return volumes
}

func (f *volumeFiles) forget(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pods, uid)
}

func (f *volumeFiles) get(uid types.UID, volume string) *runtime.Content {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pods[uid][volume]
}

// volumesOf returns the mounts of volumes that are data, without the files.
func volumesOf(mounts []*runtimeapi.Mount) (volumes []Volume) {
	for _, m := range mounts {
		path, ok := strings.CutPrefix(filepath.ToSlash(m.HostPath), filesRoot)
		if !ok {
			continue
		}
		parts := strings.SplitN(path, "/", 3) // UID, volume, sub-path
		v := Volume{Name: parts[1], Path: m.ContainerPath}
		if len(parts) == 3 {
			v.SubPath = parts[2]
		}
		volumes = append(volumes, v)
	}
	return volumes
}

// fill returns the volumes with their current files.
func (f *volumeFiles) fill(c *Container) ([]Volume, error) {
	var volumes []Volume
	for _, v := range c.Volumes {
		content := f.get(c.Pod.UID, v.Name)
		if content == nil { // an earlier agent created the instance, and the next sync has the content
			return nil, fmt.Errorf("containers: volume %q has no content yet", v.Name)
		}
		v.Files = below(content.Files, v.SubPath)
		if v.SubPath != "" && len(v.Files) == 0 {
			return nil, fmt.Errorf("containers: volume %q has no file %q", v.Name, v.SubPath)
		}
		volumes = append(volumes, v)
	}
	return volumes, nil
}

// below returns the files of a sub-path, with paths relative to it.
func below(files []runtime.File, sub string) (list []runtime.File) {
	if sub == "" {
		return files
	}
	for _, file := range files {
		if rest, ok := strings.CutPrefix(file.Path, sub); ok && (rest == "" || rest[0] == '/') {
			file.Path = strings.TrimPrefix(rest, "/")
			list = append(list, file)
		}
	}
	return list
}

// subPaths are the volumes of the engine: a sub-path of data is not resolved on this host.
type subPaths struct{ below cri.Volumes }

// Groups implements cri.Volumes.
func (s subPaths) Groups(pod *v1.Pod) []int64 {
	if s.below == nil {
		return nil
	}
	return s.below.Groups(pod)
}

// SubPath implements cri.Volumes.
func (s subPaths) SubPath(ctx context.Context, sub runtime.SubPath) (string, error) {
	switch {
	case strings.HasPrefix(sub.VolumePath, filesRoot):
		if !filepath.IsLocal(sub.Path) {
			return "", fmt.Errorf("%q is outside of the volume", sub.Path)
		}
		return filepath.Join(sub.VolumePath, sub.Path), nil
	case s.below == nil:
		return "", errors.ErrUnsupported
	}
	return s.below.SubPath(ctx, sub)
}

// updateFiles passes contents that have changed to the running instances of a pod.
func (s *service) updateFiles(ctx context.Context, pod *v1.Pod) error {
	if s.updater == nil {
		return nil
	}
	v, err := s.read(ctx)
	if err != nil {
		return err
	}
	s.files.retain(v)
	var errs []error
	for key, inst := range v.instances {
		box := v.sandboxes[inst.sandbox]
		if inst.state == nil || inst.state.Phase != Running || box == nil || uidOf(box.Metadata) != pod.UID {
			continue
		}
		c := podspec.Container(pod, inst.Metadata.GetName())
		if c == nil {
			continue
		}
		for _, m := range c.VolumeMounts {
			if content := s.files.get(pod.UID, m.Name); content != nil && m.SubPath == "" && m.SubPathExpr == "" {
				errs = append(errs, s.updateVolume(ctx, key, inst.state.ID, Volume{Name: m.Name, Path: podconfig.AbsolutePath(m.MountPath)}, content))
			}
		}
	}
	return errors.Join(errs...)
}

// updateVolume passes a content to an instance unless it has an equal one.
func (s *service) updateVolume(ctx context.Context, key, id string, v Volume, content *runtime.Content) error {
	if old := s.files.has(key, v.Path); old == content || old != nil && reflect.DeepEqual(old, content) {
		return nil
	}
	v.Files = content.Files
	if err := s.updater.UpdateFiles(ctx, id, v); err != nil {
		return backendError(ctx, fmt.Sprintf("update volume %q of instance %s", v.Name, id), err)
	}
	s.files.delivered(key, v.Path, content)
	return nil
}

func (f *volumeFiles) has(key, path string) *runtime.Content {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.updated[key][path]
}

func (f *volumeFiles) delivered(key, path string, content *runtime.Content) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.updated[key] == nil {
		f.updated[key] = map[string]*runtime.Content{}
	}
	f.updated[key][path] = content
}

// retain forgets the contents of instances that were removed.
func (f *volumeFiles) retain(v *view) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.updated, func(key string, _ map[string]*runtime.Content) bool { return v.instances[key] == nil })
}
