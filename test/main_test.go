//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/test/internal/cli"
)

func TestEachCommandIsListedAndHasHelp(t *testing.T) {
	var table strings.Builder
	assert.Zero(t, cli.Run(commands(), nil, &table))
	for _, c := range commands() {
		assert.Contains(t, table.String(), "\n  "+c.Name+" ")
		var help strings.Builder
		assert.Zero(t, cli.Run(commands(), []string{c.Name, "--help"}, &help), c.Name)
		assert.Contains(t, help.String(), "\n\nFlags:\n", c.Name)
		assert.Contains(t, help.String(), c.Name+" ", c.Name)
		assert.Equal(t, 2, cli.Run(commands(), []string{c.Name, "--no-such-flag"}, &help), c.Name)
	}
	assert.Equal(t, 2, cli.Run(commands(), []string{"no-such-command"}, &table))
}
