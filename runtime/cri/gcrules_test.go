package cri_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/ruletest"
)

// Each rule of dead containers and of logs has a test that says its number, here
// or in logrotate, or the reason why not.
func TestEachRuleOfGarbageAndLogsIsNamedByATest(t *testing.T) {
	elsewhere := map[string]string{
		"cg-1":  "rt-128 and rt-130 of TestWhichDeadContainersGo, which are the same",
		"cg-2":  "rt-129 there; podworker's Loop says which pods are removed",
		"cg-5":  "rt-131 of TestWhatACollectionDoes",
		"cg-6":  "rt-131 and rt-132: TestTheOrderInWhichAContainerGoes",
		"cg-8":  "rt-134 and rt-135: TestDeadLinksGo and what is left of pods",
		"cg-9":  "package podworker: TestACollectionThatFailsIsToldOfTheNode",
		"cg-10": "package podworker: TestWhatIsDeadIsCollectedWhenAPodIsForgotten; the dead of a pod that lives wait for the next minute",
		"lg-9":  "package cm/stats",
	}
	named := ruletest.Named(t, ruletest.Files(t, "*_test.go", "logrotate/*_test.go")...)
	ruletest.Check(t, named, elsewhere, []ruletest.Span{
		{Kind: "cg", From: 1, To: 11}, {Kind: "lg", From: 1, To: 9}, {Kind: "F", From: 35, To: 35}, {Kind: "F", From: 38, To: 38},
	}...)
}
