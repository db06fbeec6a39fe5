// Package containerstest wip
package containerstest
