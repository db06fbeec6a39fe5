package kubelet

import (
	"encoding/json"
	"strings"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// The variables by which the test finds the processes of a container on the machine,
// whatever their parent.
const (
	podVar       = "STORY_POD"
	containerVar = "STORY_CONTAINER"
	worldVar     = "STORY_DIR" // distinguishes the pods of tests that run in parallel
)

// Scripts for sh. Process 1 of a container ignores a SIGTERM for which it has no
// handler, so each has one, and waits for a child: a shell runs its handlers only
// without a foreground process.
const (
	untilTerm = "trap 'echo bye; exit 0' TERM; sleep 3600 & wait"
	stubborn  = "trap '' TERM; echo deaf; sleep 3600"
)

// container is one entry of a pod's containers, which runs script.
func container(name, script string, more ...string) string {
	command, _ := json.Marshal([]string{"sh", "-c", script})
	return entry(name, append([]string{"command: " + string(command)}, more...)...)
}

// entry is one entry of a pod's containers; fields are its further fields.
func entry(name string, fields ...string) string {
	env := "env: [{name: " + containerVar + ", value: " + name + "}, {name: " + worldVar + ", value: WORLD}"
	for _, v := range [][2]string{
		{podVar, "metadata.name"}, {"UID", "metadata.uid"}, {"NAMESPACE", "metadata.namespace"}, {"POD_IP", "status.podIP"},
		{"TIER", "metadata.labels['tier']"},
	} {
		env += ", {name: " + v[0] + `, valueFrom: {fieldRef: {fieldPath: "` + v[1] + `"}}}`
	}
	all := append([]string{"name: " + name, env + "]"}, fields...)
	if !strings.Contains(strings.Join(fields, ","), "image:") {
		all = append(all, "image: "+lab.Busybox)
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func containers(entries ...string) string {
	return "containers: [" + strings.Join(entries, ", ") + "]"
}

func inits(entries ...string) string {
	return "initContainers: [" + strings.Join(entries, ", ") + "]"
}

const (
	never     = "restartPolicy: Never"
	onFailure = "restartPolicy: OnFailure"
	sidecar   = "restartPolicy: Always" // of an init container
)

// manifest is a pod's; meta is the name, or the name and more of the metadata.
func manifest(meta string, spec ...string) string {
	if !strings.Contains(strings.Join(spec, ","), "terminationGracePeriodSeconds") {
		spec = append(spec, "terminationGracePeriodSeconds: 5")
	}
	if !strings.Contains(meta, ":") {
		meta = "name: " + meta
	}
	return "apiVersion: v1\nkind: Pod\nmetadata: {" + meta + "}\nspec:\n  " + strings.Join(spec, "\n  ") + "\n"
}
