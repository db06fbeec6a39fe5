package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestPeopleSeeTheWarningsThatTellThemSomething(t *testing.T) {
	var out bytes.Buffer
	p := &printer{w: &out}
	warn := func(reason, message string) {
		p.event(runtime.Event{Object: v1.ObjectReference{Name: "web"}, Type: v1.EventTypeWarning, Reason: reason, Message: message})
	}
	warn("BackOff", "in the status")
	warn("Failed", "in the status")
	warn("InspectFailed", "in the status, every ten seconds")
	p.event(runtime.Event{Type: v1.EventTypeNormal, Reason: "Pulled"})
	assert.Empty(t, out.String())
	warn("FailedPreStopHook", "PreStopHook failed")
	assert.Contains(t, out.String(), "FailedPreStopHook: PreStopHook failed\n")
}

func TestWhatAContainerSaysIsNoCommandToATerminal(t *testing.T) {
	var out bytes.Buffer
	p := &printer{w: &out}
	p.event(runtime.Event{
		Object: v1.ObjectReference{Name: "web"}, Type: v1.EventTypeWarning, Reason: "Unhealthy",
		Message: "probe failed: \x1b]0;title\a\x1b[2J\r\u202eé\u009b1m\xff\n15:04:05.000 agent  all is well",
	})
	assert.Contains(t, out.String(), "Unhealthy: probe failed: \\x1b]0;title\\a\\x1b[2J\\r\\u202eé\\u009b1m\ufffd\n    15:04:05.000 agent  all is well\n")
}
