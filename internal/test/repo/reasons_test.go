package repo_test

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// absentReasons are the reasons of events of a kubelet that no event here has.
var absentReasons = map[string]string{
	"CgroupV1":                          "cgroup v1 is supported",
	"Starting":                          "the node's log has the start",
	"FailedAttachVolume":                "the controller of the cluster attaches volumes",
	"SuccessfulAttachVolume":            "the controller of the cluster attaches volumes",
	"VolumeResizeFailed":                "the controller of the cluster resizes volumes",
	"VolumeResizeSuccessful":            "the controller of the cluster resizes volumes",
	"FailedMountOnFilesystemMismatch":   "the error is that of FailedMount",
	"InvalidImageID":                    "an image without an ID is not deleted",
	"KubeletSetupFailed":                "the error ends the start",
	"PossibleMemoryBackedVolumesOnDisk": "not recorded; a kubelet does with swap on kernels before 6.4",
}

// The list is written by tools/kubernetes/facts from the source of Kubernetes.
func TestTheReasonsOfEventsAreThoseOfTheKubelet(t *testing.T) {
	var source strings.Builder
	for _, name := range filesWhere(t, func(name string) bool {
		return path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && !inTestdata(name) && !strings.HasPrefix(name, "tools/") && !strings.HasPrefix(name, "test/")
	}) {
		source.Write(read(t, name))
	}
	source.WriteString(`"ResizeDeferred" "ResizeInfeasible"`) // concatenated
	for reason := range strings.Lines(string(read(t, "internal/test/repo/testdata/kubelet-reasons.txt"))) {
		reason = strings.TrimSpace(reason)
		if strings.HasPrefix(reason, "#") {
			continue
		}
		_, absent := absentReasons[reason]
		assert.Equal(t, !absent, strings.Contains(source.String(), `"`+reason+`"`), reason)
	}
}
