package cri_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	named := map[string]bool{}
	var files []string
	for _, pattern := range []string{"*_test.go", "logrotate/*_test.go"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasPrefix(file, "gcrules") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, rule := range regexp.MustCompile(`\b(cg|lg)-\d+\b|\bF-3[58]\b`).FindAllString(string(text), -1) {
			named[rule] = true
		}
	}
	for _, rule := range strings.Fields("cg-1 cg-2 cg-3 cg-4 cg-5 cg-6 cg-7 cg-8 cg-9 cg-10 cg-11 lg-1 lg-2 lg-3 lg-4 lg-5 lg-6 lg-7 lg-8 lg-9 F-35 F-38") {
		_, ok := elsewhere[rule]
		assert.True(t, named[rule] != ok, "%s: named %v, elsewhere %v", rule, named[rule], ok)
	}
}
