package printer_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status/printer"
)

func TestAPrinterPrintsChanges(t *testing.T) {
	var out bytes.Buffer
	p := &printer.Printer{W: &out}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}}
	running := v1.PodStatus{Phase: v1.PodRunning, PodIPs: []v1.PodIP{{IP: "10.0.0.1"}}}
	require.NoError(t, p.UpdatePodStatus(t.Context(), pod, running))
	lines := out.String()
	assert.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3} web {22}\S`, lines)
	assert.Contains(t, lines, "Running")
	require.NoError(t, p.UpdatePodStatus(t.Context(), pod, running))
	assert.Equal(t, lines, out.String(), "nothing has changed")
	out.Reset()
	require.NoError(t, p.DeletePod(t.Context(), pod))
	assert.Regexp(t, `web +deleted\n$`, out.String())
	require.NoError(t, p.UpdatePodStatus(t.Context(), pod, running))
	assert.Contains(t, out.String(), "Running", "the status before is forgotten")
}

func TestAPrinterPrintsWarningsThatNoStatusContains(t *testing.T) {
	var out bytes.Buffer
	p := &printer.Printer{W: &out}
	for _, reason := range []string{"BackOff", "Failed", "InspectFailed", "ErrImageNeverPull"} {
		p.Record(runtime.Event{Object: v1.ObjectReference{Name: "web"}, Type: v1.EventTypeWarning, Reason: reason, Message: "in the status"})
	}
	p.Record(runtime.Event{Type: v1.EventTypeNormal, Reason: "Pulled"})
	assert.Empty(t, out.String())
	p.Record(runtime.Event{Object: v1.ObjectReference{Name: "web"}, Type: v1.EventTypeWarning, Reason: "FailedPreStopHook", Message: "PreStopHook failed"})
	assert.Contains(t, out.String(), "FailedPreStopHook: PreStopHook failed\n")
}

func TestAPrinterWritesNoCommandsToATerminal(t *testing.T) {
	var out bytes.Buffer
	p := &printer.Printer{W: &out}
	p.Record(runtime.Event{
		Object: v1.ObjectReference{Name: "we\x1bb"}, Type: v1.EventTypeWarning, Reason: "Unhealthy",
		Message: "probe failed: \x1b]0;title\a\x1b[2J\r\u202eé\u009b1m\xff\n15:04:05.000 agent  all is well",
	})
	assert.Contains(t, out.String(), "we\\x1bb")
	assert.Contains(t, out.String(), "Unhealthy: probe failed: \\x1b]0;title\\a\\x1b[2J\\r\\u202eé\\u009b1m\ufffd\n    15:04:05.000 agent  all is well\n")
}
