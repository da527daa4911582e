"""What does a person have to know before agreeing? A plan as text, trees and next commands. Pure."""
