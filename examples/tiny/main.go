// Tiny runs one pod on one runtime until it terminates.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/process"
	"github.com/kubeparts/kubeparts/status"
)

const yaml = `{apiVersion: v1, kind: Pod, metadata: {name: tiny}, spec: {restartPolicy: OnFailure,
  initContainers: [{name: wait, image: host, command: [sleep, "1"]}],
  containers: [{name: greet, image: host, command: [echo, hello]}]}}`

func main() {
	if code, ok := process.Supervise(); ok { // this program also supervises each container
		os.Exit(code)
	}
	ctx, dir := context.Background(), must(os.MkdirTemp("", "tiny"))
	pod := must(manifest.Static([]byte(yaml), "node", "main.go", manifest.StaticOptions{}))
	processes := must(process.Open(process.Config{Dir: dir + "/process"}))
	rt := must(cri.New(cri.Config{Name: process.Name, Runtime: processes, Images: processes, Dirs: cri.Dirs{Root: dir, PodLogs: dir + "/logs"}}))
	waiting := map[string]v1.ContainerStateWaiting{}
	for {
		observed := must(rt.PodStatus(ctx, pod.UID))
		pod.Status = status.Compute(status.Facts{Pod: pod, Observed: observed, Previous: pod.Status, Waiting: waiting, Now: time.Now()})
		fmt.Println(pod.Name, status.Summary(&pod.Status))
		if status.Terminal(pod.Status.Phase) {
			break
		}
		step, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod, Status: observed})
		if err != nil {
			fmt.Println(err) // such as the back-off of a container that has crashed: the next step tries again
		}
		clear(waiting)
		for _, a := range step.Actions {
			if a.Err != nil {
				waiting[a.Target] = v1.ContainerStateWaiting{Reason: a.Reason, Message: a.Message}
			}
		}
		time.Sleep(300 * time.Millisecond) // package pleg reports changes instead
	}
	fmt.Printf("its log is in %s/logs\n", dir)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
