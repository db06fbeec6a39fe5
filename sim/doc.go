// Package sim simulates a node from a seed.
package sim
