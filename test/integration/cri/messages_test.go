package cri_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
)

// messagesOnContainerd checks termination messages (section 4.16).
func messagesOnContainerd(t *testing.T, s *sharedEngine) {
	long := "i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done"
	var last80 strings.Builder
	for i := range 80 {
		fmt.Fprintf(&last80, "line %d\n", 420+i)
	}
	wide := strings.Repeat("x", 100) + "\n"
	var containers []v1.Container
	want := map[string]string{}
	add := func(name, script_ string, fallback bool, message string) {
		c := script(name, script_)
		if fallback {
			c.TerminationMessagePolicy = v1.TerminationMessageFallbackToLogsOnError
		}
		containers, want[name] = append(containers, c), message
	}
	add("file", "echo on the console; echo all is well > /dev/termination-log", false, "all is well\n")
	add("long-file", "yes 0123456789abcde | head -n 300 > /dev/termination-log; exit 1", false, strings.Repeat("0123456789abcde\n", 256)) // rt-125
	add("no-fallback", "echo on the console; exit 1", false, "")
	add("fallback", "echo one; echo two; exit 1", true, "one\ntwo\n") // rt-126
	add("fallback-stderr", "echo out of luck >&2; exit 1", true, "out of luck\n")
	add("fallback-success", "echo on the console", true, "")
	add("fallback-file", "echo on the console; echo no luck > /dev/termination-log; exit 1", true, "no luck\n")
	add("fallback-lines", long+"; exit 1", true, last80.String())
	add("fallback-bytes", "yes "+strings.TrimSpace(wide)+" | head -n 79; exit 1", true, strings.Repeat(wide, 79)[79*101-2048:])
	elsewhere := script("elsewhere", "echo there > /tmp/last-words; exit 1")
	elsewhere.TerminationMessagePath = "/tmp/last-words"
	containers, want["elsewhere"] = append(containers, elsewhere), "there\n"
	none := script("none", "echo never read > /dev/termination-log; exit 1")
	none.TerminationMessagePath = ""
	containers, want["none"] = append(containers, none), ""

	a := s.enginePod(t, containers...)
	st := a.ends()
	for name, message := range want {
		assert.Equal(t, message, st.Container(name).Message, name)
	}
}
