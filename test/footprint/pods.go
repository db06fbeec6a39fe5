//go:build unix

package footprint

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/internal/lab"
)

const (
	// markVar is the environment variable that identifies the process of a container. Its value is
	// the container's file in the directory startedDir.
	markVar = "FOOTPRINT_STARTED"

	// startedDir is where the directory with a file of each container is mounted. A container
	// writes its file when it starts, so that the file has the time of the last start; the
	// measurement then requires no calls of the runtime.
	startedDir = "/started"
)

func podName(i int) string { return fmt.Sprintf("pod-%03d", i) }

// command is what the container of a pod runs.
func command(name string) []string {
	return []string{"sh", "-c", "echo > " + startedDir + "/" + name + "; exec sleep 1000000"}
}

// newPod returns one of the pods that are measured: one container, a hostPath volume, no service
// account.
func newPod(name, node, started string) *v1.Pod {
	return &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: v1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: new(int64(1)),
			AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
			Volumes: []v1.Volume{{Name: "started", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: started}}}},
			Containers: []v1.Container{{
				Name: "main", Image: lab.Busybox, Command: command(name),
				Env:          []v1.EnvVar{{Name: markVar, Value: filepath.Join(started, name)}},
				VolumeMounts: []v1.VolumeMount{{Name: "started", MountPath: startedDir}},
			}},
		},
	}
}

// writeManifests writes static pods.
func writeManifests(dir, started string, n int) error {
	for i := range n {
		data, err := json.Marshal(newPod(podName(i), "", started))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, podName(i)+".json"), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// createPods creates pods that are bound to the node.
func createPods(ctx context.Context, api kubernetes.Interface, node, started string, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range n {
		group.Go(func() error {
			_, err := api.CoreV1().Pods("default").Create(ctx, newPod(podName(i), node, started), metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

// awaitStarts waits until n containers have started, and returns when the last one did.
func awaitStarts(ctx context.Context, started string, n int) (last time.Time, err error) {
	for {
		files, err := os.ReadDir(started)
		if err != nil {
			return last, err
		}
		if len(files) >= n {
			for _, f := range files {
				info, err := f.Info()
				if err != nil {
					return last, err
				}
				if info.ModTime().After(last) {
					last = info.ModTime()
				}
			}
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("%d of %d containers started: %w", len(files), n, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// awaitRestart waits until a container has started after a time, and returns when it did.
func awaitRestart(ctx context.Context, file string, after time.Time) (time.Time, error) {
	for {
		info, err := os.Stat(file)
		if err != nil {
			return time.Time{}, err
		}
		if info.ModTime().After(after) {
			return info.ModTime(), nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%s does not restart: %w", filepath.Base(file), context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}
