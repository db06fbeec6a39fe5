package payload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kubeparts/kubeparts/runtime/podenv"
	"github.com/kubeparts/kubeparts/volume/atomic"
)

// DownwardAPI returns the files with the pod's metadata and the requests and limits of its containers.
// allocatable is used for containers without a limit. The error contains the errors of all items.
func DownwardAPI(pod *v1.Pod, items []v1.DownwardAPIVolumeFile, of Defaults, allocatable v1.ResourceList) (atomic.Payload, error) {
	files := atomic.Payload{}
	var errs []error
	for i := range items {
		value, err := downward(pod, &items[i], allocatable)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		files[items[i].Path] = of.file([]byte(value), items[i].Mode, items[i].User)
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		return nil, err
	}
	return files, nil
}

func downward(pod *v1.Pod, item *v1.DownwardAPIVolumeFile, allocatable v1.ResourceList) (string, error) {
	switch {
	case item.FieldRef != nil:
		return field(pod, item.FieldRef)
	case item.ResourceFieldRef == nil:
		return "", fmt.Errorf("downwardAPI item %q has neither fieldRef nor resourceFieldRef", item.Path)
	case item.ResourceFieldRef.ContainerName == "":
		// podenv uses the current container if the name is empty; a file has none.
		return "", errors.New("resourceFieldRef: containerName is required in volumes")
	}
	return podenv.ResourceFieldValue(podenv.Inputs{Pod: pod, Allocatable: allocatable}, nil, item.ResourceFieldRef)
}

// field returns a metadata field of the pod. The API permits other fields in environment variables only.
func field(pod *v1.Pod, ref *v1.ObjectFieldSelector) (string, error) {
	switch ref.FieldPath {
	case "metadata.labels":
		return lines(pod.Labels), nil
	case "metadata.annotations":
		return lines(pod.Annotations), nil
	}
	if !strings.HasPrefix(ref.FieldPath, "metadata.") {
		return "", fmt.Errorf("fieldRef: unsupported fieldPath: %v", ref.FieldPath)
	}
	return podenv.FieldValue(podenv.Inputs{Pod: pod}, ref)
}

// lines renders a map, sorted by key.
func lines(m map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%v=%q", key, m[key]))
	}
	return strings.Join(all, "\n")
}
