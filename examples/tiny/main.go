// Tiny runs one pod on one runtime until it terminates.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

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
	for {
		observed := must(rt.PodStatus(ctx, pod.UID))
		pod.Status = status.Compute(status.Facts{Pod: pod, Observed: observed, Previous: pod.Status, Now: time.Now()})
		fmt.Println(pod.Name, status.Summary(&pod.Status))
		if status.Terminal(pod.Status.Phase) {
			break
		}
		must(rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod, Status: observed})) // one step
		time.Sleep(300 * time.Millisecond)                                     // package pleg reports changes instead
	}
	fmt.Printf("its log is in %s/logs\n", dir)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
