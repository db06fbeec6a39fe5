package allocation

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// record is the checkpoint of a pod: its allocated resources, and the data that is necessary to
// count them before a source has delivered the pod.
type record struct {
	UID       types.UID       `json:"uid"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Overhead  v1.ResourceList `json:"overhead,omitempty"`
	Priority  *int32          `json:"priority,omitempty"`

	// Sidecars and Regular name the containers of the pod in their order.
	Sidecars []string `json:"sidecars,omitempty"`
	Regular  []string `json:"regular,omitempty"`

	Granted Resources `json:"granted"`

	// PodLevel are the applied pod-level resources, which the runtime does not report.
	PodLevel *v1.ResourceRequirements `json:"podLevel,omitempty"`
}

func recordOf(pod *v1.Pod, granted Resources, podLevel *v1.ResourceRequirements) record {
	r := record{
		UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name,
		Overhead: pod.Spec.Overhead, Priority: pod.Spec.Priority,
		Granted: granted, PodLevel: podLevel,
	}
	for c := range resizable(&v1.PodSpec{InitContainers: pod.Spec.InitContainers}, false) {
		r.Sidecars = append(r.Sidecars, c.Name)
	}
	for i := range pod.Spec.Containers {
		r.Regular = append(r.Regular, pod.Spec.Containers[i].Name)
	}
	return r
}

// pod returns a pod with the data of the record.
func (r *record) pod() *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: r.UID, Namespace: r.Namespace, Name: r.Name},
		Spec:       v1.PodSpec{Overhead: r.Overhead, Priority: r.Priority, Resources: r.Granted.Pod},
	}
	for _, name := range r.Sidecars {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{
			Name: name, Resources: r.Granted.Containers[name], RestartPolicy: new(v1.ContainerRestartPolicyAlways),
		})
	}
	for _, name := range r.Regular {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name, Resources: r.Granted.Containers[name]})
	}
	return pod
}

const recordSuffix = ".json"

// fileName returns the file name of a pod's record: its UID, or a hash if that is no file name.
func fileName(uid types.UID) string {
	plain := len(uid) > 0 && len(uid) <= 128 && strings.Trim(string(uid), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
	if plain {
		return string(uid) + recordSuffix
	}
	h := fnv.New128a()
	_, _ = h.Write([]byte(uid))
	return "uid." + hex.EncodeToString(h.Sum(nil)) + recordSuffix
}

// readRecords returns the records in dir, and an error for each corrupt one. It deletes temporary
// files of interrupted writes.
func readRecords(dir string) (records []record, corrupt []error, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("allocation: read directory: %w", err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), recordSuffix+checkpoint.Temporary) {
			_ = os.Remove(filepath.Join(dir, f.Name()))
		}
		if filepath.Ext(f.Name()) != recordSuffix {
			continue // another file
		}
		r, err := readRecord(dir, f.Name())
		if err != nil {
			corrupt = append(corrupt, err)
			continue
		}
		records = append(records, r)
	}
	return records, corrupt, nil
}

func readRecord(dir, name string) (record, error) {
	var r record
	path := filepath.Join(dir, name)
	if err := checkpoint.Read(path, &r); err != nil {
		return record{}, fmt.Errorf("allocation: %w", err)
	}
	if fileName(r.UID) != name {
		return record{}, fmt.Errorf("allocation: read %s: it is the record of another pod, UID %q", path, r.UID)
	}
	return r, nil
}
