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
